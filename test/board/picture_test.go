package board

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// picturesVariable writes the pictures of the documentation again when it is set: `make pictures`.
const picturesVariable = "HOLDFAST_BOARD_PICTURES"

const (
	picturesDir     = root + "/docs/pictures"
	pictureBytesMax = 80 << 10
	coloursMax      = 256 // of a picture with a palette
)

// The pictures of the documentation can be made, are small, and show the page as it is: beside each one is the
// accessibility tree of what it shows, and the sum of the styles that it was drawn with.
func TestPictures(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	wall, painting := c.open(h, "wall", harness.OpenOptions{Title: "Paint the wall", Agent: "painter", Model: "small"})
	c.ask(wall, painting, "colour", question("colour", "Which colour shall the wall be?", "white", "green"))
	trim, cleaning := c.open(h, "trim", harness.OpenOptions{Parent: "wall", Root: "wall", Title: "Clean the trim"})
	c.permit(trim, cleaning, "rm", "Remove the old paint", "rm -rf paint/old")
	coder := c.agent("coder")
	release, building := c.open(coder, "release", harness.OpenOptions{Title: "Release the parser"})
	c.ask(release, building, "version", question("version", "Which version is this?", "1.4.0", "2.0.0"))

	p := board(t, c, "")
	p.wait(`document.querySelectorAll(".row.waits").length === 3`)
	for _, text := range []string{"Paint the wall", "Release the parser"} {
		p.shows(text)
	}
	p.press("j")
	p.wait(`document.querySelector(".row.open")`)
	p.press("2")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	p.picture("inbox", 1000, 620)
	p.press("j")
	p.wait(`document.querySelector(".row.open .input dd")`)
	p.picture("phone", 390, 720)

	door, doing := c.open(h, "door", harness.OpenOptions{Title: "Paint the door", Agent: "painter", Model: "small"})
	c.append(door,
		events.ToolStarted{Call: "test", Turn: doing.ID(), Name: "bash", Input: []byte(`{"command":"make"}`)},
		events.ToolCompleted{Call: "test", Output: []byte(`"done"`)},
		events.UsageReported{Turn: doing.ID(), Model: "small", Tokens: events.Tokens{Input: 60_000},
			ContextLimit: 100_000})
	c.append(door, events.TurnFailed{Turn: doing.ID(), Error: events.Failure{Kind: "rate_limit", Text: "429: slow down",
		RetryAfterMS: 600_000}})
	q := board(t, c, "#/s/painter/door")
	q.wait(`document.querySelector("#phase")?.textContent === "retrying"`)
	c.request(c.connect(), "compaction.send", map[string]any{"harness": "painter", "session": "door",
		"message": "m1", "by": "ann", "content": "and the handle"})
	q.wait(`document.querySelector("#queue") && document.querySelectorAll("#timeline li").length === 9`)
	q.shows("would be compacted")
	q.shows("and the handle")
	q.picture("session", 1000, 900)
}

// picture takes a picture of this size, and compares what it shows with what the one in the documentation shows.
func (p *page) picture(name string, width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
	defer p.do(chromedp.EmulateViewport(1200, 900))
	drawn(p)
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	shot = p.shrink(shot)
	if len(shot) > pictureBytesMax {
		p.t.Errorf("the picture %s has %d bytes, want at most %d", name, len(shot), pictureBytesMax)
	}
	css, err := os.ReadFile(root + "/internal/board/web/board.css")
	if err != nil {
		p.t.Fatal(err)
	}
	sum := sha256.Sum256(css)
	shown := "styles " + hex.EncodeToString(sum[:8]) + "\n" + p.tree()
	path, note := filepath.Join(picturesDir, name+".png"), filepath.Join("testdata", "pictures", name+".txt")
	if os.Getenv(picturesVariable) != "" {
		for at, body := range map[string][]byte{path: shot, note: []byte(shown)} {
			if err := os.WriteFile(at, body, 0o600); err != nil {
				p.t.Fatal(err)
			}
		}
		return
	}
	want, err := os.ReadFile(note)
	if err != nil {
		p.t.Fatal(err)
	}
	if shown != string(want) {
		p.t.Errorf("%s is not what the page shows now: make pictures, and look at them:\n%s", path, shown)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if size, err := png.DecodeConfig(bytes.NewReader(body)); err != nil || int64(size.Width) != width ||
		int64(size.Height) != height {
		p.t.Errorf("%s is %d by %d (%v), want %d by %d", path, size.Width, size.Height, err, width, height)
	}
}

// shrink returns a picture with the 256 colours that it has most of: a page has few others.
func (p *page) shrink(shot []byte) []byte {
	p.t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatal(err)
	}
	count := map[color.Color]int{}
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			count[full.At(x, y)]++
		}
	}
	colours := make(color.Palette, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	colours = colours[:min(len(colours), coloursMax)]
	few := image.NewPaletted(full.Bounds(), colours)
	draw.Draw(few, few.Bounds(), full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		p.t.Fatal(err)
	}
	return out.Bytes()
}

// Each picture of the documentation is one that TestPictures makes, or TestRecording.
func TestPicturesAreMade(t *testing.T) {
	made, err := filepath.Glob("testdata/pictures/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Glob(picturesDir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	name := func(path string) string {
		base := filepath.Base(path)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	for i := range made {
		made[i] = name(made[i])
	}
	for _, path := range there {
		if !slices.Contains([]string{".png", ".gif"}, filepath.Ext(path)) || !slices.Contains(made, name(path)) {
			t.Errorf("%s is made by no program", path)
		}
	}
	if len(there) != len(made) || len(made) == 0 {
		t.Errorf("%d pictures, and the notes of %d", len(there), len(made))
	}
}
