package agent

import (
	"context"
	"encoding/json"
	"os/exec"
	"time"
)

// SignedIn tells whether the CLI could reach a model from that home and environment
// (as BuildEnv makes it): by an API key, by a subscription, or by a cloud's
// credentials. The CLI itself is asked (`claude auth status`, about half a second),
// since only it knows all the ways; it looks whether there are credentials, not
// whether they are still good. False also when the program is missing.
func SignedIn(command, home string, env []string) bool {
	r := New(Options{Command: command, Home: home, Env: env})
	path, err := r.lookPath()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "auth", "status")
	cmd.Env = r.env
	out, _ := cmd.Output() // it exits with 1 when it says no
	var status struct {
		LoggedIn bool `json:"loggedIn"`
	}
	return json.Unmarshal(out, &status) == nil && status.LoggedIn
}
