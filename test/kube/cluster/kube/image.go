package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
)

// writeImage writes an image of one layer as an archive that `ctr images import` reads, without a base image:
//
//	kube image -o FILE -tag NAME [-tag NAME] [-user UID:GID] -entrypoint PROGRAM PATH=FILE …
func writeImage() {
	var tags []string
	out, user := flag.String("o", "", "archive"), flag.String("user", "", "UID:GID")
	entry := flag.String("entrypoint", "", "program in the image")
	flag.Func("tag", "name of the image", func(s string) error { tags = append(tags, s); return nil })
	flag.Parse()
	layer, err := layerOf(flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(layer))
	config, err := json.Marshal(map[string]any{
		"created": time.Unix(0, 0).UTC(), "architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"User": *user, "Entrypoint": []string{*entry}, "WorkingDir": "/",
			"Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		log.Fatal(err)
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	index, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": tags,
		"Layers": []string{digest + "/layer.tar"}}})
	if err != nil {
		log.Fatal(err)
	}
	f, err := os.Create(*out)
	if err != nil {
		log.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, e := range []struct {
		name string
		body []byte
	}{{configName, config}, {digest + "/layer.tar", layer}, {"manifest.json", index}} {
		if err := addFile(w, e.name, 0o644, bytes.NewReader(e.body), int64(len(e.body))); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}

// layerOf returns an archive of files, each given as PATH=FILE, and of the folders that they are in.
func layerOf(files []string) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	folders := map[string]bool{}
	for _, arg := range files {
		at, from, found := strings.Cut(arg, "=")
		if !found {
			return nil, fmt.Errorf("%q is not PATH=FILE", arg)
		}
		at = strings.TrimPrefix(path.Clean(at), "/")
		parts := strings.Split(path.Dir(at), "/")
		for i := range parts {
			folder := strings.Join(parts[:i+1], "/") + "/"
			if folder == "./" || folders[folder] {
				continue
			}
			folders[folder] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}); err != nil {
				return nil, err
			}
		}
		body, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := addFile(w, at, 0o755, bytes.NewReader(body), int64(len(body))); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return layer.Bytes(), err
}

func addFile(w *tar.Writer, name string, mode int64, body io.Reader, size int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, body)
	return err
}
