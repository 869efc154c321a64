package payments

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	servers = os.Getenv("KAFKA_BOOTSTRAP_SERVERS")
	orders  = []string{"order 0", "order 1", "order 2", "order 3", "order 4"}
)

func TestEachPaymentIsInTheLedger(t *testing.T) {
	place(orders)
	harrow("POST", "/faults", `{broker_stop: {broker: 2}}`) // Now the ledger has too few replicas.
	harrow("POST", "/faults", `{message: {action: delay, delay: 1ms, api: EndTxn, kind: request, from: payments}}`)
	go func() { check(Run(t.Context(), servers)) }()
	for strings.Contains(harrow("GET", "/state", ""), "EndTxn") {
		time.Sleep(100 * time.Millisecond)
	}
	harrow("DELETE", "/faults", "")
	if paid, ledger := read("payments"), read("ledger"); !slices.Equal(paid, ledger) {
		t.Fatalf("payments: %q\nledger: %q", paid, ledger)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// harrow sends a request to the control port, and returns the answer.
func harrow(method, path, body string) string {
	request, err := http.NewRequest(method, os.Getenv("HARROW_CONTROL")+path, strings.NewReader(body))
	check(err)
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode >= http.StatusBadRequest {
		panic(string(text))
	}
	return string(text)
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(servers, ",")...))...)
	check(err)
	return made
}

func place(orders []string) {
	producer := client()
	defer producer.Close()
	for _, order := range orders {
		record := &kgo.Record{Topic: "orders", Value: []byte(order)}
		check(producer.ProduceSync(context.Background(), record).FirstErr())
	}
}

// read returns a topic up to the line of the last order.
func read(topic string) (values []string) {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	reader := client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(start))
	defer reader.Close()
	for !slices.Contains(values, "paid "+orders[len(orders)-1]) {
		for _, record := range reader.PollFetches(context.Background()).Records() {
			values = append(values, string(record.Value))
		}
	}
	return values
}
