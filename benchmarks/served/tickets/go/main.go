// Writes numbers with sarama or franz-go, with one request in flight, and counts how often one is read after a
// greater one: LIBRARY SERVERS.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const count = 5000

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func withSarama(servers []string) (failed int) {
	config := sarama.NewConfig()
	config.ClientID = "app"
	config.Version = sarama.V4_0_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 5
	config.Net.MaxOpenRequests = 1
	config.Producer.Flush.MaxMessages = 50
	producer, err := sarama.NewAsyncProducer(servers, config)
	check(err)
	go func() {
		for number := range count {
			producer.Input() <- &sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(strconv.Itoa(number))}
		}
	}()
	for range count {
		select {
		case <-producer.Successes():
		case err := <-producer.Errors():
			failed++
			fmt.Println(err)
		}
	}
	check(producer.Close())
	return failed
}

func withFranz(servers []string) (failed int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ClientID("app"), kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(1), kgo.ProducerBatchMaxBytes(1000), kgo.DefaultProduceTopic("t"))
	check(err)
	defer client.Close()
	for number := range count {
		client.Produce(context.Background(), kgo.StringRecord(strconv.Itoa(number)), func(_ *kgo.Record, err error) {
			if err != nil {
				failed++
			}
		})
		if number%50 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	check(client.Flush(context.Background()))
	return failed
}

func main() {
	servers := strings.Split(os.Args[2], ",")
	failed := map[string]func([]string) int{"sarama": withSarama, "franz-go": withFranz}[os.Args[1]](servers)
	start := map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}
	reader, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ConsumePartitions(start))
	check(err)
	defer reader.Close()
	seen, late, doubled, last := map[int]bool{}, 0, 0, -1
	for len(seen) < count-failed {
		for _, record := range reader.PollFetches(context.Background()).Records() {
			number, err := strconv.Atoi(string(record.Value))
			check(err)
			if seen[number] {
				doubled++
			} else if number < last {
				late++
			}
			seen[number], last = true, max(last, number)
		}
	}
	fmt.Printf("%s: %d failed, %d doubled, %d read after a greater one\n", os.Args[1], failed, doubled, late)
}
