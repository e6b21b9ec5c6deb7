package orders

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

var token = rand.Text()

// Host is a Kafka broker for tests.
type Host struct{ Bootstrap, control string }

// StartHost starts a container that ends with the test.
func StartHost(t *testing.T) *Host {
	t.Helper()
	container, err := testcontainers.Run(t.Context(), "odradek-ephemeral",
		testcontainers.WithEnv(map[string]string{"ODRADEK_CONTROL_TOKEN": token}),
		testcontainers.WithExposedPorts("9092/tcp", "9093/tcp"),
		testcontainers.WithWaitStrategy(wait.ForLog("odradek ready")))
	testcontainers.CleanupContainer(t, container)
	if err != nil {
		t.Fatal(err)
	}
	address, _ := container.Host(t.Context())
	kafka, _ := container.MappedPort(t.Context(), "9092/tcp")
	control, err := container.PortEndpoint(t.Context(), "9093/tcp", "http")
	if err != nil {
		t.Fatal(err)
	}
	host := &Host{Bootstrap: address + ":" + kafka.Port(), control: control}
	host.Call(t, "advertise", map[string]any{"host": address, "port": kafka.Int()}, nil)
	return host
}

// Call calls an operation of the control port and decodes its result.
func (h *Host) Call(t *testing.T, operation string, arguments map[string]any, result any) {
	t.Helper()
	body, _ := json.Marshal(arguments)
	request, _ := http.NewRequest("POST", h.control+"/"+operation, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", operation, content, err)
	}
	if result != nil {
		if err := json.Unmarshal(content, result); err != nil {
			t.Fatal(err)
		}
	}
}
