package orders

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestItTriesAgain(t *testing.T) {
	host := StartHost(t)
	host.Call(t, "topics/create", map[string]any{"name": "orders"}, nil)
	host.Call(t, "subscribe", map[string]any{"prefixes": "org.apache.kafka.producer."}, nil)
	host.Call(t, "fault", map[string]any{"api": "Produce", "drop": "before"}, nil)

	client, err := kgo.NewClient(kgo.SeedBrokers(host.Bootstrap), kgo.ClientID("orders-app"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	record := &kgo.Record{Topic: "orders", Value: []byte("one")}
	if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}

	var requests []struct{ Fault *string }
	host.Call(t, "requests/of", map[string]any{"api": "Produce"}, &requests)
	if len(requests) != 2 || requests[0].Fault == nil || requests[1].Fault != nil {
		t.Errorf("expected a second attempt after the first was dropped: %v", requests)
	}
	var records []struct{ Value string }
	host.Call(t, "topics/records", map[string]any{"name": "orders"}, &records)
	if len(records) != 1 || records[0].Value != "one" {
		t.Errorf("found %v", records)
	}
	var points []struct{ Metric string }
	host.Call(t, "telemetry/wait_for", map[string]any{"client_id": "orders-app"}, &points)
}
