// A server of HTTP/2: it passes requests on to Eyelevel's application, and sends what that answers.
//
//	go build -o h2_server h2_server.go
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

func main() {
	listen := flag.String("listen", "", "ADDRESS:PORT")
	certificate := flag.String("certificate", "", "a PEM file with the chain")
	key := flag.String("key", "", "a PEM file with the key")
	upstream := flag.String("upstream", "", "the URL of the application")
	flag.Parse()
	application, err := url.Parse(*upstream)
	if err != nil {
		log.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Director: func(request *http.Request) {
			request.URL.Scheme, request.URL.Host = application.Scheme, application.Host
			// Go would escape characters that browsers do not.
			request.Header.Set("X-Eyelevel-Target", request.RequestURI)
		},
		ModifyResponse: func(response *http.Response) error {
			// The application marks a Pragma for which Go would add a Cache-Control.
			for i, value := range response.Header["Pragma"] {
				response.Header["Pragma"][i] = strings.TrimPrefix(value, "eyelevel:")
			}
			// Go guesses a Content-Type that is missing, and does not send one that is invalid.
			if response.Header.Get("Content-Type") == "" {
				response.Header.Set("Content-Type", "\x7f")
			}
			return nil
		},
	}
	server := &http.Server{Addr: *listen, Handler: proxy, TLSConfig: &tls.Config{
		MinVersion:             tls.VersionTLS13,
		CurvePreferences:       []tls.CurveID{tls.X25519},
		SessionTicketsDisabled: true,
	}}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}
