// Records a franz-go client for `harrow check`.
//
// As a program: go run . send|read SERVERS TOPIC HISTORY PROCESS [TRANSACTIONAL_ID]
// To send, it reads lines with a partition and a value, or with `commit` or `abort`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type object = map[string]any
type list = []any

// A Recorder writes the operations of one client. A client that restarts needs a new process number.
type Recorder struct {
	file     *os.File
	process  int
	mutex    sync.Mutex
	assigned []string
	sends    *[]list // those of the open transaction
}

// Write writes a line at once, so that all clients of a machine can share the file.
func (r *Recorder) Write(kind, f string, value any) {
	line, err := json.Marshal(object{"process": r.process, "type": kind, "f": f, "value": value, "time": time.Now().UnixNano()})
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	check(err)
}

func name(topic string, partition int32) string { return fmt.Sprintf("%s-%d", topic, partition) }

// Send sends a unique value to a chosen partition.
func (r *Recorder) Send(client *kgo.Client, topic string, partition int32, value string) {
	sends, f := r.sends, "txn"
	if sends == nil {
		f = "send"
	}
	r.Write("invoke", f, []list{{"send", name(topic, partition), value}})
	record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
	client.Produce(context.Background(), record, func(record *kgo.Record, err error) {
		send, kind := list{"send", name(topic, partition), list{record.Offset, value}}, "ok"
		if err != nil { // The record may have been stored in spite of an error.
			send[2], kind = value, "info"
		}
		if sends == nil {
			r.Write(kind, f, []list{send})
			return
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		*sends = append(*sends, send)
	})
}

// Begin begins a transaction.
func (r *Recorder) Begin(client *kgo.Client) {
	check(client.BeginTransaction())
	r.sends = &[]list{}
}

// End commits or aborts a transaction.
func (r *Recorder) End(client *kgo.Client, commit kgo.TransactionEndTry) {
	check(client.Flush(context.Background()))
	check(client.EndTransaction(context.Background(), commit))
	kind := "fail"
	if commit {
		kind = "ok"
	}
	r.Write(kind, "txn", *r.sends)
	r.sends = nil
}

// Options make a consumer record its rebalances. It has to call AllowRebalance between polls.
func (r *Recorder) Options() []kgo.Opt {
	rebalance := func(isAssigned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			for topic, numbers := range partitions {
				for _, number := range numbers {
					r.assigned = slices.DeleteFunc(r.assigned, func(each string) bool { return each == name(topic, number) })
					if isAssigned {
						r.assigned = append(r.assigned, name(topic, number))
					}
				}
			}
			r.Write("invoke", "assign", append([]string{}, r.assigned...))
			r.Write("ok", "assign", append([]string{}, r.assigned...))
		}
	}
	return []kgo.Opt{
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(rebalance(true)),
		kgo.OnPartitionsRevoked(rebalance(false)),
		kgo.OnPartitionsLost(rebalance(false)),
	}
}

// Poll waits for records for some time.
func (r *Recorder) Poll(client *kgo.Client, timeout time.Duration) kgo.Fetches {
	client.AllowRebalance()
	r.Write("invoke", "poll", []list{{"poll"}})
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fetches, records := client.PollRecords(ctx, 500), map[string][]list{}
	fetches.EachRecord(func(record *kgo.Record) {
		key := name(record.Topic, record.Partition)
		records[key] = append(records[key], list{record.Offset, string(record.Value)})
	})
	r.Write("ok", "poll", []list{{"poll", records}})
	return fetches
}

// Commit commits the offsets of all polled records.
func (r *Recorder) Commit(client *kgo.Client) {
	offsets := []list{}
	for topic, partitions := range client.UncommittedOffsets() {
		for partition, offset := range partitions {
			offsets = append(offsets, list{"commit", name(topic, partition), offset.Offset})
		}
	}
	r.Write("invoke", "commit", offsets)
	check(client.CommitUncommittedOffsets(context.Background()))
	r.Write("ok", "commit", offsets)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	mode, servers, topic, history := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	process, err := strconv.Atoi(os.Args[5])
	check(err)
	file, err := os.OpenFile(history, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	recorder := &Recorder{file: file, process: process}
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(servers, ",")...)}
	if mode == "read" {
		options = append(options, recorder.Options()...)
		options = append(options, kgo.ConsumerGroup(history), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
		client, err := kgo.NewClient(options...)
		check(err)
		for recorder.Poll(client, 5*time.Second).NumRecords() == 0 { // The first polls may be too early for records.
		}
		for recorder.Poll(client, 5*time.Second).NumRecords() > 0 {
		}
		recorder.Commit(client)
		client.CloseAllowingRebalance()
		return
	}
	options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	isTransactional := len(os.Args) > 6
	if isTransactional {
		options = append(options, kgo.TransactionalID(os.Args[6]))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	if isTransactional {
		recorder.Begin(client)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 2 {
			partition, err := strconv.ParseInt(words[0], 10, 32)
			check(err)
			recorder.Send(client, topic, int32(partition), words[1])
			continue
		}
		recorder.End(client, kgo.TransactionEndTry(words[0] == "commit"))
		recorder.Begin(client)
	}
	check(client.Flush(context.Background()))
	client.Close()
}
