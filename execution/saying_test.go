package execution_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/people"
	"countersign/store/stage"
)

// sentences are all that may ever be said, by level: English and Chinese, and
// what must not be said beside it.
var sentences = map[string][2]struct {
	may string
	not []string
}{
	"waiting":       {{"Your request is waiting for approval, it is not submitted yet.", []string{"submitted", "done"}}, {"您的请求正在等待审批，尚未提交。", []string{"已提交", "已完成"}}},
	"not_submitted": {{"Your request was not submitted.", []string{"submitted", "done"}}, {"您的请求未提交。", []string{"已提交", "已完成"}}},
	"accepted":      {{"Your request was submitted.", []string{"done"}}, {"您的请求已提交。", []string{"已完成"}}},
	"queued":        {{"Your request is in the processing queue.", []string{"done"}}, {"您的请求已进入处理队列。", []string{"已完成"}}},
	"completed":     {{"Your request is done.", nil}, {"您的请求已完成。", nil}},
	"failed":        {{"Your request could not be completed.", []string{"done", "never submitted"}}, {"您的请求未能办成。", []string{"已完成", "从未提交"}}},
	"unknown":       {{"We cannot confirm the result of your request yet.", []string{"done", "failed"}}, {"您的请求结果目前无法确认。", []string{"已完成", "已失败"}}},
}

// later may follow where the contract names something that will tell.
var later = [2]string{"We will confirm it later.", "我们稍后会再确认。"}

// speaker reads what may be said, as a program and as a person.
type speaker struct {
	*bench
	client *execution.Client
	person *http.Client
}

func (b *bench) speaker() speaker {
	b.T.Helper()
	_, key, err := b.People.CreateKey(b.T.Context(), stage.System(action.NewID("req")), b.Agent.ID, 0)
	b.must(err)
	client, err := execution.NewClient(b.console.URL, execution.NewSecret(key), execution.Options{})
	b.must(err)
	jar, err := cookiejar.New(nil)
	b.must(err)
	s := speaker{b, client, &http.Client{Jar: jar}}
	s.signIn(b.Mia)
	return s
}

// signIn makes somebody else the reader of pages.
func (s speaker) signIn(p people.Person) {
	s.T.Helper()
	link, err := s.People.NewLink(s.T.Context(), stage.System(action.NewID("req")), p.ID, time.Hour)
	s.must(err)
	req, err := http.NewRequest(http.MethodPost, s.console.URL+"/login/"+link, nil)
	s.must(err)
	req.Header.Set("Origin", s.console.URL)
	resp, err := s.person.Do(req)
	s.must(err)
	resp.Body.Close()
}

var tags = regexp.MustCompile(`<[^>]*>`)

// page is the text of a page.
func (s speaker) page(path string) string {
	s.T.Helper()
	resp, err := s.person.Get(s.console.URL + path)
	s.must(err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	s.must(err)
	if resp.StatusCode != http.StatusOK {
		s.T.Fatalf("%s answers %d", path, resp.StatusCode)
	}
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(string(raw), " "))), " ")
}

// says checks that exactly the sentence of a level may be said, in the API and,
// once somebody has decided, on the page; and no other.
func (s speaker) says(id, level string) {
	s.T.Helper()
	for i, lang := range []string{"en", "zh"} {
		said, err := s.client.Statement(s.T.Context(), id, lang)
		s.must(err)
		want := sentences[level][i]
		may := said.MaySay
		if len(may) == 2 && may[1] == later[i] {
			may = may[:1]
		}
		if len(may) != 1 || may[0] != want.may || strings.Join(said.MustNotSay, "|") != strings.Join(want.not, "|") {
			s.T.Errorf("%s, %s: may say %q and not %q, want %q and not %q", level, lang, said.MaySay, said.MustNotSay, want.may, want.not)
		}
	}
	page := s.page("/actions/" + id)
	for other, sentence := range sentences {
		for _, one := range sentence {
			if strings.Contains(page, one.may) != (other == level && level != "waiting") {
				s.T.Errorf("%s: the page shows %q: %v", level, one.may, other != level)
			}
		}
	}
}

// What is received, queued, done or unknown gives exactly its sentence, in both
// languages, to programs and on the page. Without a receipt there is none that
// says that anything was submitted or done.
func TestA2_A13_EachReceiptHasItsSentence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	const submit = "service.submit_request"
	_, err := b.Callbacks.AddSecret(t.Context(), submit, b.tokens.ServiceSecret, action.By{Kind: action.BySystem})
	b.must(err)
	b.arm(`{"system":"service","method":"GET","path":"/service/operations","fault":"error-before","count":0}`) // nothing is asked: callbacks tell
	b.arm(`{"system":"service","fault":"accept","delay_ms":20,"queued":true,"object":"c-2016"}`)
	b.arm(`{"system":"service","fault":"act-then-reset","object":"c-2017"}`)

	propose := func(customer string) action.Action {
		return b.propose(submit, actor, `{"customer_id":"`+customer+`","topic":"delivery","wish":"leave it with the neighbour"}`, "")
	}
	a, unknown := propose("c-2016"), propose("c-2017")
	s.says(a.ID, "waiting")
	b.approve(a)
	s.says(a.ID, "not_submitted")
	b.approve(unknown)
	b.start(b.config())
	b.awaitState(unknown.ID, action.ResultUnknown)
	s.says(unknown.ID, "unknown")
	b.awaitState(a.ID, action.Accepted) // 202; callbacks have no address yet
	s.says(a.ID, "accepted")

	b.fail(submit, once(1<<30, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		if b.get(a.ID).Proven == action.ProvesQueued {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		serve(w, r)
	}))
	b.must(b.refunds.CallBack(t.Context(), "service", b.console.URL+"/v1/callbacks/"+submit, ""))
	b.await(a.ID, "queued", func(a action.Action) bool { return a.Proven == action.ProvesQueued })
	s.says(a.ID, "queued")
	b.fail(submit, nil)
	a = b.awaitState(a.ID, action.Applied)
	s.says(a.ID, "completed")
	if counts := b.shopDo("GET", "/faults/counts?system=service&key="+a.ExecutionKey, b.tokens.Control, ""); counts != `{"received":1,"executions":1}` {
		t.Errorf("the desk has %s", counts)
	}
}

// The desk calls back that it is done, and the request is where it was: that is
// read back, and nothing is said to be done. What it refuses was not done.
func TestA13_ACallbackIsNoProof(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	const submit = "service.submit_request"
	_, err := b.Callbacks.AddSecret(t.Context(), submit, b.tokens.ServiceSecret, action.By{Kind: action.BySystem})
	b.must(err)
	b.must(b.refunds.CallBack(t.Context(), "service", b.console.URL+"/v1/callbacks/"+submit, ""))
	ends := map[string]action.Action{}
	for customer, fault := range map[string]string{"c-2016": `"outcome":"in_word"`, "c-2017": `"outcome":"refused"`, "c-2018": `"forged":"wrong","outcome":"refused"`} {
		b.arm(`{"system":"service","fault":"accept","delay_ms":20,"object":"` + customer + `",` + fault + `}`)
		ends[customer] = b.approve(b.propose(submit, actor, `{"customer_id":"`+customer+`","topic":"repair","wish":"it stops after a minute"}`, ""))
	}
	b.start(b.config())
	b.await(ends["c-2016"].ID, "read back", func(a action.Action) bool {
		return a.Proven == action.ProvesCompleted && len(a.Observations) > 1 && a.Observations[len(a.Observations)-1].Holds == action.HoldsFalse
	})
	s.says(ends["c-2016"].ID, "accepted")
	for _, customer := range []string{"c-2017", "c-2018"} {
		b.awaitState(ends[customer].ID, action.Failed)
		s.says(ends[customer].ID, "failed")
	}
}

// saysOnly is says for what has no sentence on its page: a draft.
func (s speaker) saysOnly(id, level string) {
	s.T.Helper()
	for i, lang := range []string{"en", "zh"} {
		said, err := s.client.Statement(s.T.Context(), id, lang)
		s.must(err)
		if len(said.MaySay) != 1 || said.MaySay[0] != sentences[level][i].may {
			s.T.Errorf("may say %q", said.MaySay)
		}
	}
}
