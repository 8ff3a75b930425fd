// The least a Go service would be: net/http, a health route, a route with a
// parameter, and the graceful shutdown that its documentation shows.
package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/health/ready", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"ready"}`)
	})
	mux.HandleFunc("/orders/", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "order "+strings.TrimPrefix(r.URL.Path, "/orders/"))
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
		time.Sleep(time.Duration(ms) * time.Millisecond)
		io.WriteString(w, "slow")
	})
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: mux}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan struct{})
	go func() {
		<-ctx.Done()
		server.Shutdown(context.Background())
		close(done)
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		panic(err)
	}
	<-done
}
