// Command gates tells, from a live Temporal server, which versions of each gate the open
// runs hold, and which gate can be retired. The gates are read from the code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"agentsmith/internal/proof"
	"agentsmith/workflows"
)

// source is where the workflows' code stands, from the top of the checkout.
const source = "workflows"

func main() {
	kong.Parse(&struct{}{}, kong.Name("gates"), kong.Description(
		"Tells which versions of each gate the open runs hold, and which gate can be retired. "+
			"Where the server is comes from the environment: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_PROFILE and so on."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", oneLine(err))
		os.Exit(1)
	}
}

// code is the code that the open runs are held against.
type code struct {
	reading  *proof.Reading
	register func(worker.WorkflowRegistry)
	conv     converter.DataConverter
}

func run(ctx context.Context, w io.Writer) error {
	reading, err := proof.Read(source)
	if err != nil {
		return fmt.Errorf("%w; run it at the top of the checkout", err)
	}
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return fmt.Errorf("read the Temporal connection from the environment: %w", err)
	}
	opts.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	c, err := client.DialContext(ctx, opts)
	if err != nil && len(reading.Gates) == 0 && len(reading.Problems) == 0 {
		// Nothing can be wrong with what is not there; only runs of other code stay unseen.
		fmt.Fprintf(w, "There is no gate in %s/. The open runs were not looked at: no answer from %s.\n%s\n", source, address(opts), lastLine(nil))
		return nil
	}
	if err != nil {
		return explain(opts, err)
	}
	defer c.Close()
	err = report(ctx, c, code{reading, workflows.Register, opts.DataConverter}, w)
	return explain(opts, err)
}

func address(o client.Options) string {
	if o.HostPort == "" {
		return client.DefaultHostPort
	}
	return o.HostPort
}

func namespace(o client.Options) string {
	if o.Namespace == "" {
		return client.DefaultNamespace
	}
	return o.Namespace
}

// explain says what to look at when the server does not do what it is asked.
func explain(o client.Options, err error) error {
	var denied *serviceerror.PermissionDenied
	var nowhere *serviceerror.NamespaceNotFound
	var noAttribute *noAttributeError
	var own *ownError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case errors.As(err, &denied):
		return fmt.Errorf("%s refuses: %w; check TEMPORAL_API_KEY, and what it may do in the namespace %s", address(o), err, namespace(o))
	case errors.As(err, &nowhere):
		return fmt.Errorf("%s has no namespace %s; check TEMPORAL_NAMESPACE", address(o), namespace(o))
	case errors.As(err, &noAttribute):
		return fmt.Errorf("the namespace %s of %s cannot be searched by %s: %w", namespace(o), address(o), attribute, err)
	}
	return fmt.Errorf("ask Temporal at %s, namespace %s: %w; check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE", address(o), namespace(o), err)
}

// ownError is what the command found, and no trouble with the server.
type ownError struct{ what string }

func (e *ownError) Error() string { return e.what }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
