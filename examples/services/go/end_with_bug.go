//go:build bug

package payments

import (
	"log"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The bug: a failed write does not abort its transaction.
func commits(written error) kgo.TransactionEndTry {
	if written != nil {
		log.Print(written)
	}
	return kgo.TryCommit
}
