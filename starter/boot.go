package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	// bootTries is how often a question of the boot is asked that got no answer.
	bootTries = 3
	bootWait  = 2 * time.Second
	// serverRetry is the wait before a Temporal server that is not ready is asked again.
	serverRetry = 200 * time.Millisecond
)

// identity is who a seat of this starter is.
type identity struct {
	config.Seat
	slackapi.Identity
	client *slackapi.Client
}

// authTester is what the boot asks Slack.
type authTester interface {
	AuthTest(ctx context.Context) (slackapi.Identity, error)
}

// identify asks Slack who each local seat is (D5). A seat that does not know itself would
// answer its own words, so any doubt is an error, which says how to go on.
func identify(ctx context.Context, seats []config.Seat, clientOf func(config.Seat) *slackapi.Client) ([]identity, error) {
	var all []identity
	for _, s := range seats {
		c := clientOf(s)
		id, err := askIdentity(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("no word from Slack on who the seat %s is, so the starter does not start: %w; check the token in %s", s.Name, err, s.BotTokenEnv)
		}
		if id.BotID == "" {
			return nil, fmt.Errorf("the token in %s is no bot's (it is user %s): use the bot token of the app of seat %s", s.BotTokenEnv, id.UserID, s.Name)
		}
		for _, o := range all {
			switch {
			case o.UserID == id.UserID:
				return nil, fmt.Errorf("the seats %s and %s are one Slack app (bot user %s): give each seat its own app and tokens", o.Name, s.Name, id.UserID)
			case o.Team != id.Team:
				return nil, fmt.Errorf("the seats %s and %s are in two teams (%s and %s): run a starter for each team", o.Name, s.Name, o.Team, id.Team)
			}
		}
		all = append(all, identity{Seat: s, Identity: id, client: c})
	}
	return all, nil
}

func askIdentity(ctx context.Context, c authTester) (slackapi.Identity, error) {
	for try := 1; ; try++ {
		id, err := c.AuthTest(ctx)
		if !errors.Is(err, slackapi.ErrAmbiguous) || try == bootTries || !pause(ctx, bootWait) {
			return id, err
		}
	}
}

// rosterOf is who is who, as one seat sees it.
func rosterOf(self identity, all []identity, cfg *config.Config) rules.Roster {
	r := rules.Roster{Team: self.Team, Dispatcher: cfg.Dispatcher.BotUser}
	for _, o := range all {
		r.Seats = append(r.Seats, rules.SeatIdentity{Name: o.Name, BotUser: o.UserID, BotID: o.BotID})
	}
	for _, s := range cfg.Seats {
		if s.Remote {
			r.Seats = append(r.Seats, rules.SeatIdentity{Name: s.Name, BotUser: s.BotUser})
		}
	}
	r.Self = rules.SeatIdentity{Name: self.Name, BotUser: self.UserID, BotID: self.BotID}
	return r
}

// temporalChecker is the part of Temporal's client that the boot asks.
type temporalChecker interface {
	WorkflowService() workflowservice.WorkflowServiceClient
	OperatorService() operatorservice.OperatorServiceClient
}

var _ temporalChecker = client.Client(nil)

// checkTemporal makes sure that the namespace is there and has the search attributes that
// brains are started with (T2). The error says how to go on.
func checkTemporal(ctx context.Context, c temporalChecker, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var noNamespace *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &noNamespace), isNotFound(err):
		return fmt.Errorf("no namespace %s in Temporal: set TEMPORAL_NAMESPACE, or create it with `temporal operator namespace create --namespace %s`", namespace, namespace)
	case err != nil:
		return fmt.Errorf("ask Temporal for the namespace %s: %w; check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE", namespace, err)
	}
	list, err := searchAttributes(ctx, c, namespace)
	if err != nil {
		return fmt.Errorf("ask Temporal for the search attributes of the namespace %s: %w", namespace, err)
	}
	return missingAttributes(list.GetCustomAttributes(), namespace)
}

// searchAttributes asks again while a server that has only just started cannot tell.
func searchAttributes(ctx context.Context, c temporalChecker, namespace string) (*operatorservice.ListSearchAttributesResponse, error) {
	for {
		list, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		var unavailable *serviceerror.Unavailable
		if err == nil || !errors.As(err, &unavailable) || !pause(ctx, serverRetry) {
			return list, err
		}
	}
}

func missingAttributes(there map[string]enumspb.IndexedValueType, namespace string) error {
	var missing, wrong []string
	for _, key := range workflows.SearchKeys() {
		switch have, ok := there[key.GetName()]; {
		case !ok:
			missing = append(missing, "--name "+key.GetName()+" --type "+typeName(key))
		case have != key.GetValueType():
			wrong = append(wrong, key.GetName()+" is "+have.String()+" and must be "+typeName(key))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("search attributes of the namespace %s have the wrong type: %s; remove them, or use another namespace", namespace, strings.Join(wrong, ", "))
	}
	if len(missing) > 0 {
		return fmt.Errorf("the namespace %s lacks search attributes; create them with `temporal operator search-attribute create --namespace %s %s` and start again",
			namespace, namespace, strings.Join(missing, " "))
	}
	return nil
}

func typeName(key temporal.SearchAttributeKey) string {
	return key.GetValueType().String()
}
