#!/bin/sh
# Makes the certificates of the dialer's tests: an authority, and a server `localhost` that it vouches for.
# Good for a hundred years; the keys protect nothing.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
new="openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500"
$new -keyout "$tmp/ca.pem" -out "$tmp/ca.crt" -subj "/CN=test authority" -addext "keyUsage=critical,keyCertSign"
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$tmp/key.pem" -out "$tmp/server.csr" \
    -subj "/CN=localhost"
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n' > "$tmp/ext"
openssl x509 -req -in "$tmp/server.csr" -CA "$tmp/ca.crt" -CAkey "$tmp/ca.pem" -CAcreateserial -days 36500 \
    -extfile "$tmp/ext" -out "$tmp/server.crt"
cp "$tmp/ca.crt" authority.pem
openssl x509 -in authority.pem -outform der -out authority.der
openssl x509 -in "$tmp/server.crt" -outform der -out server.der
openssl pkcs8 -topk8 -nocrypt -in "$tmp/key.pem" -outform der -out server.key.der
