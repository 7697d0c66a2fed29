package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"agentsmith/internal/failpoint"
	"agentsmith/rules"
)

const (
	// ackTimeout ends an ack while no socket is open. Slack sends the envelope again.
	ackTimeout = 2 * time.Second
	// doorRetry is the wait after Slack refused the app's token.
	doorRetry = time.Minute
	// doorPatience is how long a door may be shut before that is said aloud.
	doorPatience = 30 * time.Second
)

// door reads the Slack socket of one seat, in order, and acks what is durable (L2).
type door struct {
	*seat
	inbox  receiver
	client *socketmode.Client
	// first is called when the first socket is open.
	first func()
	// gap is called when a socket opens: lines may have been missed since (L6). The first
	// one brings no time.
	gap func(since time.Time)

	// shutSince is when the socket was lost, zero while one is open; opened counts them, and
	// suspects those in a row that were too many. Only the reader touches them.
	shutSince        time.Time
	opened, suspects int
	// recount is when a count of sockets that is too high is taken again.
	recount time.Duration

	mu   sync.Mutex
	conn *watchedConn
}

// receiver makes durable what a door reads; what it returns nil for may be acked (L2).
type receiver interface {
	receive(ctx context.Context, in inbound) error
	// flush is called after the ack.
	flush()
}

// doorOptions say how a door reaches Slack.
type doorOptions struct {
	appToken string
	apiURL   string // ends with "/"; "" is Slack's own
	timeout  time.Duration
	// patience is how long a socket may be without a ping; 0 is pingPatience.
	patience time.Duration
	gap      func(since time.Time)
	// opened is called when the first socket is open; nil for nobody.
	opened func()
}

func newDoor(s *seat, x receiver, o doorOptions) *door {
	if o.patience == 0 {
		o.patience = pingPatience
	}
	d := &door{seat: s, inbox: x, gap: o.gap, first: o.opened, shutSince: s.now(), recount: time.Minute}
	opts := []slack.Option{slack.OptionAppLevelToken(o.appToken), slack.OptionHTTPClient(&http.Client{Timeout: o.timeout})}
	if o.apiURL != "" {
		opts = append(opts, slack.OptionAPIURL(o.apiURL))
	}
	// The socket is opened with the app's token only; the bot's has no business here.
	d.client = socketmode.New(slack.New("", opts...),
		socketmode.OptionDialer(watchDialer(d, o.patience)), socketmode.OptionPingInterval(o.patience))
	return d
}

// run keeps the door open until ctx ends. It returns when the envelope at hand is done.
func (d *door) run(ctx context.Context) {
	var reader sync.WaitGroup
	reader.Go(func() { d.read(ctx) })
	defer reader.Wait()
	for ctx.Err() == nil {
		err := d.client.RunContext(ctx)
		if ctx.Err() != nil {
			return
		}
		d.loud.Raise("door "+d.name, "Slack does not take the app token of "+d.name+": no line reaches it. Check "+
			"its app token and that Socket Mode is on, then restart the starter: "+clip(err.Error()))
		pause(ctx, doorRetry)
	}
}

// read takes the socket's events one after the other. Nothing it calls may block for
// longer than an envelope can wait: slack-go holds 50, then the socket stalls.
func (d *door) read(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case evt := <-d.client.Events:
			// The envelope at hand is finished, also while the starter ends (T6).
			d.event(context.WithoutCancel(ctx), evt)
		}
	}
}

func (d *door) event(ctx context.Context, evt socketmode.Event) {
	switch evt.Type {
	case socketmode.EventTypeHello:
		d.hello(evt.Request)
	case socketmode.EventTypeConnecting:
		if d.shutSince.IsZero() {
			d.shutSince = d.now()
		}
	case socketmode.EventTypeConnectionError:
		if e, ok := evt.Data.(*slack.ConnectionErrorEvent); ok {
			d.notOpened(e.ErrorObj)
		}
	case socketmode.EventTypeIncomingError:
		d.log.Warn("a frame of the socket could not be read", "seat", d.name)
	case socketmode.EventTypeErrorWriteFailed:
		d.log.Warn("an ack could not be sent; Slack sends the envelope again", "seat", d.name)
	case socketmode.EventTypeErrorBadMessage:
		// slack-go does not know the event or one of its blocks. The raw message is whole.
		if e, ok := evt.Data.(*socketmode.ErrorBadMessage); ok {
			d.take(ctx, e.Message)
		}
	case socketmode.EventTypeEventsAPI, socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive:
		raw, err := json.Marshal(envelope{Type: evt.Request.Type, EnvelopeID: evt.Request.EnvelopeID, Payload: evt.Request.Payload})
		if err != nil {
			d.log.Error("an envelope could not be taken", "seat", d.name, "envelope", clip(evt.Request.EnvelopeID), "error", err)
			return
		}
		d.take(ctx, raw)
	}
}

// take makes one envelope durable and acks it; what could be made durable nowhere is not
// acked, and Slack sends it again (L2).
func (d *door) take(ctx context.Context, raw json.RawMessage) {
	in := readEnvelope(d.roster.Team, raw)
	if err := d.inbox.receive(ctx, in); err != nil {
		d.log.Error("an envelope is not acked", "seat", d.name, "envelope", clip(in.envelope), "error", err)
		return
	}
	if in.envelope != "" {
		d.ack(ctx, in)
	}
	failpoint.At(failpoint.StarterAcked)
	d.inbox.flush()
}

func (d *door) ack(ctx context.Context, in inbound) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	var payload any
	if in.kind == isCommand {
		payload = map[string]string{
			"response_type": "ephemeral",
			"text":          rules.CommandText(clip(in.command), d.force.dispatcher()),
		}
	}
	if err := d.client.AckCtx(ctx, in.envelope, payload); err != nil {
		d.log.Warn("an envelope could not be acked; Slack sends it again", "seat", d.name, "envelope", clip(in.envelope), "error", err)
	}
}

// hello begins a socket.
func (d *door) hello(req *socketmode.Request) {
	since := d.shutSince
	d.shutSince = time.Time{}
	d.loud.Clear("door "+d.name, d.name+" is connected to Slack.")
	d.loud.Clear("silent "+d.name, "The socket of "+d.name+" is open again.")
	if d.opened++; d.opened == 1 {
		since = time.Time{} // the gap before the boot began where the ledger ends
		if d.first != nil {
			d.first()
		}
	} else if since.IsZero() {
		since = d.now()
	}
	d.gap(since)
	d.log.Info("the socket is open", "seat", d.name, "connections", req.NumConnections)
	d.compare(req.NumConnections)
}

// compare looks for a second process on the same app: it takes some of the lines. Slack
// may still count a socket of ours that has just gone, so the count is taken again by
// opening the socket anew.
func (d *door) compare(n int) {
	if n <= d.connections {
		d.suspects = 0
		d.loud.Clear("connections "+d.name, d.name+" is connected once.")
		return
	}
	d.suspects++
	if d.opened == 1 || d.suspects > 1 {
		d.loud.Raise("connections "+d.name, "Another process is connected as "+d.name+" and takes some of its lines: stop it. Slack counts "+
			count(n, "socket")+", and this starter opened "+count(d.connections, "socket")+".")
	}
	if d.suspects <= 2 {
		time.AfterFunc(d.recount, d.reopen)
	}
}

// reopen drops the connection at hand.
func (d *door) reopen() {
	d.mu.Lock()
	conn := d.conn
	d.mu.Unlock()
	if conn != nil {
		if err := conn.drop(); err != nil {
			d.log.Debug("the socket was gone already", "seat", d.name, "error", err)
		}
	}
}

func (d *door) dialled(conn *watchedConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = conn
}

func (d *door) notOpened(err error) {
	if d.shutSince.IsZero() {
		d.shutSince = d.now()
	}
	d.log.Warn("the socket could not be opened; it is tried again", "seat", d.name, "error", clip(err.Error()))
	if d.now().Sub(d.shutSince) >= doorPatience {
		d.loud.Raise("door "+d.name, "No socket to Slack for "+d.name+" since "+d.shutSince.UTC().Format(time.RFC3339)+": no line reaches it. "+clip(err.Error()))
	}
}

// disconnected is called when Slack says why it ends a socket; slack-go does not tell.
func (d *door) disconnected(reason string) {
	if reason == "link_disabled" {
		d.loud.Raise("door "+d.name, "Socket Mode was switched off for the app of "+d.name+": no line reaches it. Switch it on in the app's settings.")
		return
	}
	d.log.Info("Slack ends the socket", "seat", d.name, "reason", clip(reason))
}

// silent is called when a socket is closed on which no ping came for too long.
func (d *door) silent(since time.Duration) {
	d.loud.Raise("silent "+d.name, "The socket of "+d.name+" was half open, with no ping for "+since.Round(time.Second).String()+"; it is opened again, and what was missed is read.")
}
