package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"agentsmith/internal/stack"
	"agentsmith/internal/store/storetest"
)

// secrets are what must stand in no log and no history (X3).
func (s *system) secrets() (out [][]byte) {
	for _, a := range s.Slack.State().Apps {
		out = append(out, []byte(a.BotToken), []byte(a.AppToken))
	}
	for _, u := range s.Slack.State().Users {
		out = append(out, []byte(u.Token))
	}
	if s.database != nil {
		out = append(out, []byte(storetest.PostgresPassword))
	}
	return append(out, []byte("local-model-needs-no-key"), []byte("local-github-token"), []byte("local-github-webhook-secret"))
}

// historiesWithSecrets looks for secrets in every history of the server.
func (s *system) historiesWithSecrets() (out []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	secrets := s.secrets()
	var page []byte
	for {
		list, err := s.temporalClient.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: stack.Namespace, PageSize: 200, NextPageToken: page})
		if err != nil {
			return append(out, "Temporal does not list: "+err.Error())
		}
		for _, e := range list.GetExecutions() {
			iter := s.temporalClient.GetWorkflowHistory(ctx, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for iter.HasNext() {
				event, err := iter.Next()
				if err != nil {
					break
				}
				raw, err := proto.Marshal(event)
				if err != nil {
					continue
				}
				for _, secret := range secrets {
					if bytes.Contains(raw, secret) {
						out = append(out, fmt.Sprintf("a secret stands in the history of %s, event %d", e.GetExecution().GetWorkflowId(), event.GetEventId()))
					}
				}
			}
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return out
		}
	}
}

// leakedSecrets looks for secrets in every log.
func (s *system) leakedSecrets() (out []string) {
	secrets := s.secrets()
	logs, _ := filepath.Glob(filepath.Join(s.Dir, "logs", "*.log"))
	for _, path := range logs {
		raw, err := os.ReadFile(path)
		if err != nil {
			out = append(out, "a log cannot be read: "+err.Error())
		}
		for _, secret := range secrets {
			if i := bytes.Index(raw, secret); i >= 0 {
				out = append(out, fmt.Sprintf("a secret stands in %s: %q", filepath.Base(path), raw[max(0, i-80):i]))
			}
		}
	}
	return out
}
