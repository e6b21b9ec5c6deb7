// Produces and reads records with franz-go until standard input ends, so that it has metrics to push (KIP-714).
//
// Usage: telemetry BOOTSTRAP TOPIC CLIENT_ID
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const pause = 50 * time.Millisecond

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: telemetry BOOTSTRAP TOPIC CLIENT_ID")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(bootstrap, topic, clientID string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ClientID(clientID), kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics(topic), kgo.ConsumerGroup(clientID+"-group"), kgo.InstanceID("first"), kgo.Rack("rack-1"),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go func() {
		for ctx.Err() == nil {
			client.PollFetches(ctx)
		}
	}()
	for ctx.Err() == nil {
		client.Produce(ctx, kgo.StringRecord("value"), nil)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}
