#!/bin/sh
# tests/captures.sh PROGRAM: the captures in tests/data/captures get the verdicts that stand beside them.
set -eu
program=$1
folder=$(dirname "$0")/data/captures
judged=0
wrong=0
while read -r status file words; do
  case $status in '' | '#') continue ;; esac
  got=0
  # shellcheck disable=SC2086 # words are words
  "$program" replay "$folder/$file.safetensors" $words --quiet || got=$?
  judged=$((judged + 1))
  if [ "$got" -ne "$status" ]; then
    echo "$file $words: exit status $got, must be $status"
    wrong=$((wrong + 1))
  fi
done <"$folder/verdicts"
[ "$judged" -ge 5 ] || { echo "only $judged captures were judged"; exit 1; }
echo "$judged judged, $wrong wrong"
[ "$wrong" -eq 0 ]
