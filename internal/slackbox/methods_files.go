package slackbox

import (
	"encoding/json"
	"html"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// maxFile is how large an upload may be, in bytes (Slack takes 1 GB).
const maxFile = 64 << 20

// file is an upload and what became of it.
type file struct {
	File
	owner    *user
	length   int64
	data     []byte
	uploaded bool
	complete bool
	deleted  bool
}

// public shows the file as a message carries it: without its shares.
func (f *file) public() *File {
	if f.deleted {
		return &File{ID: f.ID, Mode: "tombstone"}
	}
	shown := f.File
	shown.Shares, shown.Channels, shown.Groups, shown.IMs = nil, nil, nil, nil
	return &shown
}

func getUploadURL(c *call) (obj, *apiError) {
	name, length := c.p["filename"], c.p.number("length", 0)
	if name == "" || length <= 0 {
		return nil, &apiError{code: "invalid_arguments", messages: []string{"[ERROR] filename and length are required"}}
	}
	if length > maxFile {
		return nil, fail("file_upload_size_restricted")
	}
	s := c.s
	f := &file{owner: c.who.user, length: int64(length)}
	id, ext := s.newID("F"), strings.TrimPrefix(path.Ext(name), ".")
	kind := mime.TypeByExtension("." + ext)
	if kind, _, _ = strings.Cut(kind, ";"); kind == "" {
		kind = "application/octet-stream"
	}
	private := s.base + "/files-pri/" + s.team.ID + "-" + id + "/"
	plain := url.PathEscape(strings.ToLower(name))
	f.File = File{
		ID: id, Created: c.now.Unix(), Timestamp: c.now.Unix(), Name: name, Title: name, Mimetype: kind, Filetype: ext,
		PrettyType: strings.ToUpper(ext), User: c.who.user.ID, UserTeam: c.who.user.Team, Mode: "hosted", Size: int64(length),
		URLPrivate: private + plain, URLPrivateDownload: private + "download/" + plain,
		Permalink: s.base + "/files/" + c.who.user.ID + "/" + id + "/" + plain, FileAccess: "visible",
	}
	if f.Filetype == "" {
		f.Filetype = "binary"
	}
	key := s.newUUID()
	s.files[id], s.uploads[key] = f, f
	return obj{"upload_url": s.base + "/upload/v1/" + key, "file_id": id}, nil
}

// serveUpload takes the bytes, as multipart (slack-go) or as the bare body.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.uploads[r.PathValue("key")]
	c := &call{s: s, method: "upload", now: s.clock.Now(), p: params{}}
	if f != nil {
		c.who = s.tokens[f.owner.Token]
		if f.owner.app != nil {
			c.who = s.tokens[f.owner.app.BotToken]
		}
		c.p["file"] = f.ID
	}
	before := s.fire(faultsBefore(), c.match())
	s.mu.Unlock()
	if before != nil && !s.faultBefore(w, r, c, before) {
		return
	}
	if f == nil {
		http.Error(w, "This upload URL is not known.", http.StatusNotFound)
		return
	}
	data, err := readUpload(r.Header.Get("Content-Type"), http.MaxBytesReader(w, r.Body, maxFile+1<<20))
	if err != nil || int64(len(data)) != f.length {
		http.Error(w, "The bytes do not have the length that was announced.", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	f.data, f.uploaded = data, true
	after := s.fire(faultsAfter(), match{method: "upload", write: true, who: c.match().who})
	s.oracle.call(s, c, nil, http.StatusOK, faultName(before, after), nil)
	s.touched()
	s.mu.Unlock()
	if after != nil {
		s.loseResponse(w, r, after, time.Duration(after.DelayMS)*time.Millisecond)
		return
	}
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data)))
}

func readUpload(contentType string, body io.Reader) ([]byte, error) {
	kind, attrs, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return io.ReadAll(body)
	}
	r := multipart.NewReader(body, attrs["boundary"])
	for {
		part, err := r.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" || part.FormName() == "file" || part.FormName() == "filename" {
			return io.ReadAll(part)
		}
	}
}

func completeUpload(c *call) (obj, *apiError) {
	var asked []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if json.Unmarshal([]byte(c.p["files"]), &asked) != nil || len(asked) == 0 {
		return nil, fail("invalid_arguments")
	}
	var files []*file
	for _, a := range asked {
		f := c.s.files[a.ID]
		switch {
		case f == nil || f.owner != c.who.user || f.deleted:
			return nil, fail("file_not_found")
		case !f.uploaded:
			return nil, fail("file_upload_not_finished")
		case f.complete:
			return nil, fail("file_already_completed")
		}
		files = append(files, f)
	}
	var to []*channel
	for _, id := range append(c.p.list("channels"), c.p.list("channel_id")...) {
		ch := c.s.channels[id]
		if ch == nil || !c.knows(ch) {
			return nil, fail("channel_not_found")
		}
		if !ch.has(c.who.user.ID) {
			return nil, fail("not_in_channel")
		}
		to = append(to, ch)
	}
	thread := c.p["thread_ts"]
	if thread != "" && !validTS(thread) {
		return nil, fail("invalid_thread_ts")
	}
	blocks, bad := checkBlocks(c.p["blocks"], c.s.blockID)
	if bad != nil {
		return nil, bad
	}
	shown := []*File{}
	for i, f := range files {
		f.complete = true
		if asked[i].Title != "" {
			f.Title = asked[i].Title
		}
		shown = append(shown, &f.File)
	}
	share := func() {
		for _, ch := range to {
			c.share(ch, files, thread, blocks)
		}
	}
	if d := c.s.settings.FileShareDelayMS; d > 0 {
		c.s.clock.AfterFunc(time.Duration(d)*time.Millisecond, func() {
			c.s.mu.Lock()
			defer c.s.mu.Unlock()
			c.now = c.s.clock.Now()
			share()
			c.s.touched()
		})
	} else {
		share()
	}
	return obj{"files": shown}, nil
}

// share posts the message that carries the files.
func (c *call) share(ch *channel, files []*file, thread string, blocks json.RawMessage) {
	parent, _ := ch.parentOf(thread)
	m := &message{ch: ch, author: c.who.user, parent: parent, subtype: "file_share", files: files, askedThread: thread}
	m.text, m.blocks = escape(strings.ReplaceAll(c.p["initial_comment"], "\x00", "")), blocks
	c.store(m)
	for _, f := range files {
		sh := Share{TS: m.ts, ChannelName: ch.name, TeamID: c.s.team.ID, ShareUserID: m.author.ID}
		if parent != nil {
			sh.ThreadTS = parent.ts
		}
		where := "private"
		switch ch.kind {
		case kindChannel:
			where = "public"
			f.Channels, f.IsPublic = append(f.Channels, ch.id), true
		case kindIM:
			f.IMs = append(f.IMs, ch.id)
		default:
			f.Groups = append(f.Groups, ch.id)
		}
		if f.Shares == nil {
			f.Shares = map[string]map[string][]Share{}
		}
		if f.Shares[where] == nil {
			f.Shares[where] = map[string][]Share{}
		}
		f.Shares[where][ch.id] = append(f.Shares[where][ch.id], sh)
	}
}

// canRead tells whether a caller may see a file: its owner, and who is where it was shared.
func (c *call) canRead(f *file) bool {
	if f.owner == c.who.user {
		return true
	}
	for _, id := range append(append(append([]string{}, f.Channels...), f.Groups...), f.IMs...) {
		if ch := c.s.channels[id]; ch != nil && c.knows(ch) {
			return true
		}
	}
	return false
}

func fileInfo(c *call) (obj, *apiError) {
	f := c.s.files[c.p["file"]]
	switch {
	case f == nil || !f.complete && f.owner != c.who.user || !c.canRead(f):
		return nil, fail("file_not_found")
	case f.deleted:
		return nil, fail("file_deleted")
	}
	shown := f.File
	if !c.asOf.IsZero() {
		shown.Shares, shown.Channels, shown.Groups, shown.IMs = nil, nil, nil, nil
		if time.Unix(shown.Created, 0).After(c.asOf) {
			return nil, fail("file_not_found")
		}
	}
	return obj{"file": &shown, "comments": []any{}, "response_metadata": cursor("")}, nil
}

func deleteFile(c *call) (obj, *apiError) {
	f := c.s.files[c.p["file"]]
	switch {
	case f == nil || !c.canRead(f):
		return nil, fail("file_not_found")
	case f.deleted:
		return nil, fail("file_deleted")
	case f.owner != c.who.user:
		return nil, fail("cant_delete_file")
	}
	f.deleted, f.data = true, nil
	return nil, nil
}

// serveFile gives a file's bytes to whoever may read it. Everyone else is sent to
// the sign-in page, as on Slack: the client must tell the page from the file.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	token := bearer(r)
	if token == "" {
		token = r.URL.Query().Get("t")
	}
	_, id, _ := strings.Cut(r.PathValue("file"), "-")
	s.mu.Lock()
	c := &call{s: s, method: "download", p: params{"file": id}, who: s.tokens[token], now: s.clock.Now()}
	f := s.files[id]
	ok := f != nil && c.who != nil && !s.revoked[token] && !f.deleted && f.uploaded && c.canRead(f) && c.needs("files:read") == nil
	before := s.fire(faultsBefore(), c.match())
	var data []byte
	var kind string
	if ok {
		data, kind = f.data, f.Mimetype
	}
	s.mu.Unlock()
	if before != nil && !s.faultBefore(w, r, c, before) {
		return
	}
	if !ok {
		http.Redirect(w, r, "/signin?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Content-Disposition", "attachment")
	_, _ = w.Write(data)
}

func (s *Server) serveSignin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title><p>Sign in to see "+html.EscapeString(r.URL.Query().Get("redir"))+"</p>")
}
