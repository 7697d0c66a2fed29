package main

import (
	"context"
	"errors"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// pullLedger is the part of the store that knows pull requests, claims and webhooks.
type pullLedger interface {
	PullThreads(ctx context.Context, repo string, number int) ([]store.PullRequest, error)
	ClaimOf(ctx context.Context, seat string, t rules.Thread) (store.Claim, error)
	ClaimBySlug(ctx context.Context, slug string) (store.Claim, error)
	SeenDelivery(ctx context.Context, id string) (bool, error)
	FreshDelivery(ctx context.Context, id string) (bool, error)
}

// storedLinks are the links in the store.
type storedLinks struct{ ledger pullLedger }

func (s storedLinks) ofPull(ctx context.Context, repo string, number int) ([]pullLink, error) {
	pulls, err := s.ledger.PullThreads(ctx, repo, number)
	if err != nil {
		return nil, err
	}
	var links []pullLink
	for _, p := range pulls {
		link := pullLink{seat: p.Seat, thread: p.Thread, pull: p}
		switch claim, err := s.ledger.ClaimOf(ctx, p.Seat, p.Thread); {
		case err == nil:
			link.slug = claim.Slug
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
		links = append(links, link)
	}
	return links, nil
}

func (s storedLinks) ofSlug(ctx context.Context, slug string) ([]pullLink, error) {
	claim, err := s.ledger.ClaimBySlug(ctx, slug)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []pullLink{{seat: claim.Seat, thread: claim.Thread, slug: claim.Slug}}, nil
}

func (s storedLinks) seen(ctx context.Context, delivery string) (bool, error) {
	return s.ledger.SeenDelivery(ctx, delivery)
}

func (s storedLinks) took(ctx context.Context, delivery string) error {
	_, err := s.ledger.FreshDelivery(ctx, delivery)
	return err
}
