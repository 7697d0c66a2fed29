// Package githubbox is a local GitHub for tests and the local stack: the reads of its
// REST API that Smith makes, and signed webhooks as GitHub sends them. What it sends is
// made from the files in payloads, which have the documented shape of each payload.
// Its state is changed by its methods, or over HTTP at /_control/.
package githubbox
