// Package payments writes a payment and a line of the ledger for each order, in one transaction.
package payments

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Run serves orders until its context is done.
func Run(ctx context.Context, servers string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(servers, ",")...), kgo.ClientID("payments"),
		kgo.TransactionalID("payments"), kgo.RecordDeliveryTimeout(time.Second),
		kgo.ConsumerGroup("payments"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for {
		orders := session.PollRecords(ctx, 1).Records()
		if ctx.Err() != nil {
			return nil
		}
		if err := session.Begin(); err != nil {
			return err
		}
		written := pay(ctx, session, orders)
		if _, err := session.End(ctx, commits(written)); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// pay returns the first error of its writes.
func pay(ctx context.Context, session *kgo.GroupTransactSession, orders []*kgo.Record) error {
	for _, order := range orders {
		for _, topic := range []string{"payments", "ledger"} {
			record := &kgo.Record{Topic: topic, Value: append([]byte("paid "), order.Value...)}
			if err := session.ProduceSync(ctx, record).FirstErr(); err != nil {
				return err
			}
		}
	}
	return nil
}
