package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var (
	ca          = flag.String("ca", "", "`FILE` of the authority to trust, in PEM: connect with TLS")
	certificate = flag.String("certificate", "", "`FILE` with the client's certificate and key, in PEM")
	user        = flag.String("user", "", "`NAME` to log in with SCRAM-SHA-256")
	password    = flag.String("password", "", "of the user")
	address     = flag.String("address", "", "`IP` of all brokers, whatever their names are: with TLS")
)

// security returns the options for TLS and the login.
func security() ([]kgo.Opt, error) {
	var options []kgo.Opt
	if *ca != "" {
		text, err := os.ReadFile(*ca)
		if err != nil {
			return nil, err
		}
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate", *ca)
		}
		if *certificate != "" {
			pair, err := tls.LoadX509KeyPair(*certificate, *certificate)
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{pair}
		}
		if *address == "" {
			options = append(options, kgo.DialTLSConfig(config))
		} else {
			options = append(options, kgo.Dialer(dialer(config)))
		}
	}
	if *user != "" {
		options = append(options, kgo.SASL(scram.Auth{User: *user, Pass: *password}.AsSha256Mechanism()))
	}
	return options, nil
}

// dialer returns a function that connects to one address, and names the broker in the TLS handshake.
func dialer(config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			return nil, err
		}
		named := config.Clone()
		named.ServerName = name
		return (&tls.Dialer{Config: named}).DialContext(ctx, network, net.JoinHostPort(*address, port))
	}
}
