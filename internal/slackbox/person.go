package slackbox

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Person is someone who types, reacts and edits, in this process: the same methods
// as over HTTP, without faults and without a socket in between.
type Person struct {
	s    *Server
	name string
}

// Person returns the person with that name or id; an unknown one fails when used.
func (s *Server) Person(name string) Person { return Person{s, name} }

// call runs a Web API method as the person and returns its answer.
func (p Person) call(method string, args params) (obj, error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	u := p.s.find(p.name)
	if u == nil || u.bot() {
		return nil, errNo("person", p.name)
	}
	if ch := p.s.channelOf(args["channel"]); ch != nil {
		args["channel"] = ch.id
	}
	c := &call{s: p.s, method: method, p: args, now: p.s.clock.Now()}
	bad := p.s.identify(c, u.Token)
	body, failed := p.s.run(c, bad)
	p.s.oracle.call(p.s, c, failed, 0, "", body)
	p.s.touched()
	if failed != nil {
		return nil, fmt.Errorf("slackbox: %s as %s: %w", method, p.name, errors.New(failed.code))
	}
	return body, nil
}

// Say posts to a channel (id or name) and returns the ts. @name and #channel in the
// text become mentions.
func (p Person) Say(channel, text string) (string, error) { return p.Reply(channel, "", text) }

// Reply posts into a thread.
func (p Person) Reply(channel, threadTS, text string) (string, error) {
	body, err := p.call("chat.postMessage", params{"channel": channel, "thread_ts": threadTS, "text": text, "link_names": "1"})
	if err != nil {
		return "", err
	}
	return body["ts"].(string), nil
}

// Edit changes the person's own message.
func (p Person) Edit(channel, ts, text string) error {
	_, err := p.call("chat.update", params{"channel": channel, "ts": ts, "text": text, "link_names": "1"})
	return err
}

// Delete removes the person's own message.
func (p Person) Delete(channel, ts string) error {
	_, err := p.call("chat.delete", params{"channel": channel, "ts": ts})
	return err
}

// React puts an emoji on a message; Unreact takes it away.
func (p Person) React(channel, ts, name string) error {
	_, err := p.call("reactions.add", params{"channel": channel, "timestamp": ts, "name": name})
	return err
}

// Unreact takes the person's emoji off a message.
func (p Person) Unreact(channel, ts, name string) error {
	_, err := p.call("reactions.remove", params{"channel": channel, "timestamp": ts, "name": name})
	return err
}

// DM returns the id of the direct message with an app or a person, opened if need be.
func (p Person) DM(with string) (string, error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	a, b := p.s.find(p.name), p.s.find(with)
	if a == nil || b == nil {
		return "", errNo("person or app", p.name+", "+with)
	}
	ch := p.s.directMessage(a, b)
	ch.open = true
	return ch.id, nil
}

// Command types a slash command.
func (p Person) Command(channel, command, text string) error {
	_, err := p.call("chat.command", params{"channel": channel, "command": command, "text": text})
	return err
}

// Act uses a button or menu of an app's message; actions is Slack's list of them.
func (p Person) Act(channel, ts string, actions json.RawMessage) error {
	_, err := p.call("blocks.actions", params{"channel": channel, "message_ts": ts, "actions": string(actions)})
	return err
}
