#!/usr/bin/env bash
# Builds an archive of the program for each system given as os/arch, with a file of checksums, in dist/. The same commit
# gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
version=$(sed -n 's/^const version = "\(.*\)"$/\1/p' cmd/holdfast/program.go)
[ -n "$version" ] || { echo "no version in cmd/holdfast/program.go"; exit 1; }
[ $# -gt 0 ] || { echo "usage: deploy/release.sh os/arch…"; exit 2; }
at=$(git log -1 --format=%ct 2>/dev/null || echo 0)

dist=${DIST:-$PWD/dist}
rm -rf "$dist"
mkdir -p "$dist"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
for system in "$@"; do
	os=${system%/*} arch=${system#*/}
	name=holdfast_${version}_${os}_${arch}
	binary=holdfast
	[ "$os" = windows ] && binary=holdfast.exe
	mkdir "$stage/$name"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch "$GO" build -trimpath -buildvcs=false -ldflags '-s -w' \
		-o "$stage/$name/$binary" ./cmd/holdfast
	cp LICENSE README.md CHANGELOG.md "$stage/$name"
	tar --sort=name --mtime="@$at" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		-C "$stage" -cf - "$name" | gzip -n >"$dist/$name.tar.gz"
	rm -r "${stage:?}/$name"
	echo "dist/$name.tar.gz"
done
(cd "$dist" && sha256sum ./*.tar.gz | sed 's| \./| |' >SHA256SUMS && sha256sum --quiet --check SHA256SUMS)
echo "dist/SHA256SUMS"
