// Uses a cluster with franz-go: SERVERS COUNT PROTOCOL RESULT.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions     = 3
	transactions   = 20
	perTransaction = 50
	abortedEvery   = 5
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func client(servers, id string, options ...kgo.Opt) *kgo.Client {
	known := []kgo.Opt{kgo.SeedBrokers(strings.Split(servers, ",")...), kgo.ClientID(id)}
	made, err := kgo.NewClient(append(known, options...)...)
	check(err)
	return made
}

func produce(servers string, count int) int64 {
	producer := client(servers, "producer", kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond))
	defer producer.Close()
	var acked atomic.Int64
	for number := 0; number < count; number++ {
		record := &kgo.Record{Topic: "plain", Partition: int32(number % partitions), Value: []byte(strconv.Itoa(number))}
		producer.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err == nil {
				acked.Add(1)
			}
		})
	}
	check(producer.Flush(ctx))
	return acked.Load()
}

func member(servers, protocol string, number int, assigned *atomic.Int64) *kgo.Client {
	options := []kgo.Opt{
		kgo.ConsumerGroup("group"), kgo.ConsumeTopics("plain"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll(), kgo.Balancers(kgo.RangeBalancer()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			if len(got["plain"]) > 0 {
				assigned.Store(int64(len(got["plain"])))
			}
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, _ map[string][]int32) {
			check(client.CommitMarkedOffsets(ctx))
		}),
	}
	chosen := ctx
	if protocol == "consumer" {
		chosen = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
	}
	options = append(options, kgo.WithContext(chosen))
	return client(servers, fmt.Sprintf("member-%d", number), options...)
}

func consume(servers string, count int, protocol string, figures map[string]any) {
	seen := map[string]bool{}
	var assigned [2]atomic.Int64
	members := []*kgo.Client{member(servers, protocol, 0, &assigned[0])}
	for len(seen) < count || len(members) < 2 || assigned[1].Load() == 0 {
		if len(members) == 1 && len(seen) > count/3 {
			members = append(members, member(servers, protocol, 1, &assigned[1]))
		}
		for _, each := range members {
			limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			fetches := each.PollRecords(limited, 2000)
			cancel()
			fetches.EachRecord(func(record *kgo.Record) { seen[string(record.Value)] = true })
			each.MarkCommitRecords(fetches.Records()...)
			each.AllowRebalance()
		}
	}
	for _, each := range members {
		check(each.CommitMarkedOffsets(ctx))
		each.CloseAllowingRebalance()
	}
	asking := client(servers, "asking")
	defer asking.Close()
	offsets, err := kadm.NewClient(asking).FetchOffsets(ctx, "group")
	check(err)
	var committed int64
	offsets.Each(func(each kadm.OffsetResponse) { committed += each.At })
	figures["consumed"], figures["shared"], figures["committed"] = len(seen), true, committed
}

func transact(servers string, figures map[string]any) {
	producer := client(servers, "payer", kgo.TransactionalID("pay"), kgo.DefaultProduceTopic("paid"))
	for number := 0; number < transactions; number++ {
		check(producer.BeginTransaction())
		for place := 0; place < perTransaction; place++ {
			producer.Produce(ctx, kgo.StringRecord(fmt.Sprintf("%d-%d", number, place)), func(_ *kgo.Record, err error) { check(err) })
		}
		check(producer.Flush(ctx))
		check(producer.EndTransaction(ctx, kgo.TransactionEndTry(number%abortedEvery != 0)))
	}
	producer.Close()
	start := map[string]map[int32]kgo.Offset{"paid": {0: kgo.NewOffset().AtStart()}}
	reader := client(servers, "auditor", kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(start))
	defer reader.Close()
	read, committed := 0, (transactions-transactions/abortedEvery)*perTransaction
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for read < committed && limited.Err() == nil {
		read += len(reader.PollFetches(limited).Records())
	}
	ends, err := kadm.NewClient(reader).ListEndOffsets(ctx, "paid")
	check(err)
	end, _ := ends.Lookup("paid", 0)
	figures["read_committed"], figures["paid_end"] = read, end.Offset
}

func main() {
	servers, protocol, result := os.Args[1], os.Args[3], os.Args[4]
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	figures := map[string]any{}
	began := time.Now()
	figures["acked"] = produce(servers, count)
	produced := time.Now()
	consume(servers, count, protocol, figures)
	consumed := time.Now()
	transact(servers, figures)
	figures["produced_s"], figures["consumed_s"] = produced.Sub(began).Seconds(), consumed.Sub(produced).Seconds()
	text, err := json.Marshal(figures)
	check(err)
	check(os.WriteFile(result, text, 0o644))
}
