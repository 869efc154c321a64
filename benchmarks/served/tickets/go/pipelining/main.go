// Writes A while the ISR is too small, and B and C as soon as it has grown, with sarama or franz-go and five requests in
// flight, without idempotence. Prints the order of the log: LIBRARY SERVERS.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func withSarama(servers []string) (send func(string), finish func()) {
	config := sarama.NewConfig()
	config.ClientID = "app"
	config.Version = sarama.V2_1_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 5
	config.Net.MaxOpenRequests = 5
	config.Producer.Flush.MaxMessages = 1
	producer, err := sarama.NewAsyncProducer(servers, config)
	check(err)
	var pending sync.WaitGroup
	go func() {
		for {
			select {
			case <-producer.Successes():
			case err := <-producer.Errors():
				fmt.Println(err)
			}
			pending.Done()
		}
	}()
	return func(value string) {
		pending.Add(1)
		producer.Input() <- &sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(value)}
	}, pending.Wait
}

func withFranz(servers []string) (send func(string), finish func()) {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ClientID("app"), kgo.DefaultProduceTopic("t"),
		kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5), kgo.ProducerLinger(0))
	check(err)
	report := func(_ *kgo.Record, err error) {
		if err != nil {
			fmt.Println(err)
		}
	}
	return func(value string) {
			client.Produce(context.Background(), kgo.StringRecord(value), report)
		}, func() {
			check(client.Flush(context.Background()))
			client.Close()
		}
}

// waitFor waits until the cluster has as many brokers, and the partition has them in its ISR. Its connections are not those
// of the producer.
func waitFor(client *kgo.Client, brokers int) {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr("t")
	for {
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = append(request.Topics, topic)
		response, err := request.RequestWith(context.Background(), client)
		check(err)
		if len(response.Brokers) == brokers && len(response.Topics[0].Partitions[0].ISR) == brokers {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	servers := strings.Split(os.Args[2], ",")
	start := map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}
	reader, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ConsumePartitions(start))
	check(err)
	defer reader.Close()
	send, finish := map[string]func([]string) (func(string), func()){"sarama": withSarama, "franz-go": withFranz}[os.Args[1]](servers)
	send("first")
	waitFor(reader, 1)
	time.Sleep(time.Second)
	send("A")
	waitFor(reader, 2)
	for _, value := range []string{"B", "C"} {
		send(value)
		time.Sleep(200 * time.Millisecond)
	}
	finish()
	var log []string
	for len(log) < 4 {
		for _, record := range reader.PollFetches(context.Background()).Records() {
			log = append(log, string(record.Value))
		}
	}
	fmt.Printf("%s: %s\n", os.Args[1], strings.Join(log, " "))
}
