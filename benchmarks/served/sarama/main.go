// Uses a cluster with sarama: SERVERS COUNT PROTOCOL RESULT.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

const (
	partitions     = 3
	transactions   = 20
	perTransaction = 50
	abortedEvery   = 5
)

var servers []string

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func config(id string) *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = id
	made.Version = sarama.V4_0_0_0
	made.Metadata.Retry.Max = 100
	made.Producer.Retry.Max = 100
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Idempotent = true
	made.Net.MaxOpenRequests = 1
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	return made
}

func produce(count int) int {
	settings := config("producer")
	settings.Producer.Partitioner = sarama.NewManualPartitioner
	settings.Producer.Flush.Frequency = 5 * time.Millisecond
	producer, err := sarama.NewAsyncProducer(servers, settings)
	check(err)
	go func() {
		for number := 0; number < count; number++ {
			value := sarama.StringEncoder(strconv.Itoa(number))
			producer.Input() <- &sarama.ProducerMessage{Topic: "plain", Partition: int32(number % partitions), Value: value}
		}
	}()
	acked := 0
	for range count {
		select {
		case <-producer.Successes():
			acked++
		case err := <-producer.Errors():
			fmt.Fprintln(os.Stderr, err)
		}
	}
	check(producer.Close())
	return acked
}

// member notes what it reads in seen, and in assigned whether it has partitions.
type member struct {
	seen     *sync.Map
	count    *atomic.Int64
	assigned atomic.Bool
}

func (each *member) Setup(session sarama.ConsumerGroupSession) error {
	each.assigned.Store(len(session.Claims()["plain"]) > 0)
	return nil
}

func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (each *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			if _, known := each.seen.LoadOrStore(string(message.Value), true); !known {
				each.count.Add(1)
			}
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func consume(count int, figures map[string]any) {
	var seen sync.Map
	var read atomic.Int64
	var running sync.WaitGroup
	ctx, end := context.WithCancel(context.Background())
	start := func(number int) *member {
		group, err := sarama.NewConsumerGroup(servers, "group", config(fmt.Sprintf("member-%d", number)))
		check(err)
		made := &member{seen: &seen, count: &read}
		running.Go(func() {
			for ctx.Err() == nil {
				if err := group.Consume(ctx, []string{"plain"}, made); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
			check(group.Close())
		})
		return made
	}
	wait := func(until func() bool) {
		for !until() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	first := start(0)
	wait(func() bool { return read.Load() > int64(count/3) })
	second := start(1)
	wait(func() bool { return read.Load() >= int64(count) && first.assigned.Load() && second.assigned.Load() })
	end()
	running.Wait()
	admin, err := sarama.NewClusterAdmin(servers, config("asking"))
	check(err)
	defer admin.Close()
	offsets, err := admin.ListConsumerGroupOffsets("group", map[string][]int32{"plain": {0, 1, 2}})
	check(err)
	var committed int64
	for _, block := range offsets.Blocks["plain"] {
		committed += block.Offset
	}
	figures["consumed"], figures["shared"], figures["committed"] = read.Load(), true, committed
}

func transact(figures map[string]any) {
	settings := config("payer")
	settings.Producer.Transaction.ID = "pay"
	producer, err := sarama.NewSyncProducer(servers, settings)
	check(err)
	for number := 0; number < transactions; number++ {
		check(producer.BeginTxn())
		for place := 0; place < perTransaction; place++ {
			value := sarama.StringEncoder(fmt.Sprintf("%d-%d", number, place))
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "paid", Value: value})
			check(err)
		}
		if number%abortedEvery != 0 {
			check(producer.CommitTxn())
		} else {
			check(producer.AbortTxn())
		}
	}
	check(producer.Close())
	settings = config("auditor")
	settings.Consumer.IsolationLevel = sarama.ReadCommitted
	client, err := sarama.NewClient(servers, settings)
	check(err)
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	check(err)
	reader, err := consumer.ConsumePartition("paid", 0, sarama.OffsetOldest)
	check(err)
	read, committed := 0, (transactions-transactions/abortedEvery)*perTransaction
	patience := time.After(time.Minute)
reading:
	for read < committed {
		select {
		case <-reader.Messages():
			read++
		case <-patience:
			break reading
		}
	}
	end, err := client.GetOffset("paid", 0, sarama.OffsetNewest)
	check(err)
	figures["read_committed"], figures["paid_end"] = read, end
}

func main() {
	servers = strings.Split(os.Args[1], ",")
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	figures := map[string]any{}
	began := time.Now()
	figures["acked"] = produce(count)
	produced := time.Now()
	consume(count, figures)
	consumed := time.Now()
	transact(figures)
	figures["produced_s"], figures["consumed_s"] = produced.Sub(began).Seconds(), consumed.Sub(produced).Seconds()
	text, err := json.Marshal(figures)
	check(err)
	check(os.WriteFile(os.Args[4], text, 0o644))
}
