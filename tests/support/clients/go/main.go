// Go's net/http client against a server; see tests/support/foreign.lua.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

var client = &http.Client{
	Timeout: 10 * time.Second,
	Transport: &http.Transport{
		MaxIdleConnsPerHost:   8,
		ExpectContinueTimeout: 10 * time.Second,
	},
}

func ask(method, url string, body io.Reader, headers ...string) (*http.Response, []byte, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return answer, data, err
}

func check(what string, right bool, details ...any) {
	if !right {
		fmt.Fprintln(os.Stderr, what, details)
		os.Exit(1)
	}
}

func expect(what string, status int, wanted []byte, method, url string, body io.Reader, headers ...string) *http.Response {
	answer, data, err := ask(method, url, body, headers...)
	check(what, err == nil, err)
	check(what, answer.StatusCode == status, answer.Status)
	check(what, wanted == nil || bytes.Equal(data, wanted), "wrong body of", len(data))
	return answer
}

func small(url string) {
	for i := 0; i < 20; i++ {
		expect("GET", 200, []byte("a"), "GET", url+"/echo/a", nil)
		expect("POST", 200, []byte("body"), "POST", url+"/echo/b", strings.NewReader("body"))
		expect("404", 404, nil, "GET", url+"/nowhere", nil)
		expect("405", 405, nil, "DELETE", url+"/echo/a", nil)
		expect("204", 204, []byte{}, "GET", url+"/nothing", nil)
		expect("304", 304, []byte{}, "GET", url+"/old", nil)
		expect("HEAD", 200, []byte{}, "HEAD", url+"/big?n=1000000", nil)
	}
}

func basics(url string) {
	_, first, err := ask("GET", url+"/remote", nil)
	check("GET", err == nil, err)
	small(url)
	large := bytes.Repeat([]byte("moontide"), 640000)
	for i := 0; i < 2; i++ {
		expect("large GET", 200, bytes.Repeat([]byte("0123456789"), 500000), "GET", url+"/big?n=5000000", nil)
		expect("chunked GET", 200, nil, "GET", url+"/chunked", nil)
		expect("large POST", 200, large, "POST", url+"/upload", bytes.NewReader(large))
		// A reader of unknown length is sent in chunks.
		answer := expect("chunked POST", 200, large, "POST", url+"/upload", io.MultiReader(bytes.NewReader(large)))
		check("encoding", answer.Header.Get("X-Encoding") == "chunked")
		answer = expect("100-continue", 200, large, "POST", url+"/upload", bytes.NewReader(large), "Expect", "100-continue")
		check("expect", answer.Header.Get("X-Expect") == "100-continue")
	}
	expect("the same connection", 200, first, "GET", url+"/remote", nil)
	expect("too large", 413, nil, "POST", url+"/small", bytes.NewReader(large))
	expect("too large, asked first", 413, nil, "POST", url+"/small", bytes.NewReader(large), "Expect", "100-continue")
}

type counts struct {
	sync.Mutex `json:"-"`
	Answered   int      `json:"answered"`
	Posts      int      `json:"posts"`
	Refused    int      `json:"refused"`
	Errors     []string `json:"errors"`
}

// Asks until it is refused.
func (c *counts) work(url string, number int, begun *sync.WaitGroup) {
	for n := 0; ; n++ {
		id := fmt.Sprintf("%d-%d", number, n)
		var answer *http.Response
		var data []byte
		var err error
		if n%2 == 0 {
			answer, data, err = ask("GET", url+"/echo/"+id+"?ms=5", nil)
		} else {
			answer, data, err = ask("POST", url+"/echo/"+id, strings.NewReader(id))
		}
		c.Lock()
		if errors.Is(err, syscall.ECONNREFUSED) {
			c.Refused++
		} else if err != nil {
			c.Errors = append(c.Errors, id+": "+err.Error())
		} else if answer.StatusCode != 200 || string(data) != id {
			c.Errors = append(c.Errors, id+": "+answer.Status+" "+string(data))
		} else {
			c.Answered++
			c.Posts += n % 2
		}
		c.Unlock()
		if n == 3 {
			begun.Done()
		}
		if err != nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func drain(url string) {
	c := &counts{Errors: []string{}}
	var begun, ended sync.WaitGroup
	for i := 0; i < 8; i++ {
		begun.Add(1)
		ended.Add(1)
		go func(number int) {
			c.work(url, number, &begun)
			ended.Done()
		}(i)
	}
	begun.Wait()
	fmt.Println("under way")
	ended.Wait()
	json.NewEncoder(os.Stdout).Encode(c)
}

func main() {
	if os.Args[1] == "basics" {
		basics(os.Args[2])
	} else {
		drain(os.Args[2])
	}
}
