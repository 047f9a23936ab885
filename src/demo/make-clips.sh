#!/bin/sh
# Makes the clips of `headwater demo`: short loops of a moving test picture and a tone.
#
# They are made once and kept beside this script, so that nobody needs ffmpeg to build. Run it again after changing
# it; needs ffmpeg with libx264 and drawtext, and the DejaVu fonts (Debian: ffmpeg fonts-dejavu-core).
#
# What matters in them:
# - key frames once a second and nowhere else, no reordering, so that a loop has no seam in the picture order;
# - as many audio frames as fit the length exactly (AAC 8 s, MPEG-1 layer II 6 s), so that it has none in the sound;
# - one audio frame in each PES packet, as live encoders send them;
# - the two streams of one channel differ in picture, tone, PIDs and audio codec, so that a failover can be seen,
#   heard, and read off the packets.
set -eu
cd "$(dirname "$0")"

font=/usr/share/fonts/truetype/dejavu/DejaVuSansMono-Bold.ttf
[ -f "$font" ] || { echo "no $font: install fonts-dejavu-core" >&2; exit 1; }

# clip NAME PICTURE HERTZ CODEC SECONDS SAMPLES FIRST_PID TITLE
# SAMPLES are those that make as many audio frames as wanted; the AAC encoder adds one frame of its own.
clip() {
    name=$1 picture=$2 hertz=$3 codec=$4 seconds=$5 samples=$6 pid=$7 title=$8
    ffmpeg -v error -y \
        -f lavfi -i "$picture,trim=duration=$seconds" \
        -f lavfi -i "sine=frequency=$hertz:sample_rate=48000:beep_factor=2,atrim=end_sample=$samples" \
        -vf "scale=640:360,format=yuv420p,drawbox=x=0:y=304:w=640:h=56:color=black@0.7:t=fill,\
drawtext=fontfile=$font:text='$title':x=20:y=318:fontsize=28:fontcolor=white,\
drawtext=fontfile=$font:text='o':x='mod(t*320,640)':y=270:fontsize=40:fontcolor=white:borderw=3,\
drawtext=fontfile=$font:text='%{eif\\:mod(n,25)+1\\:d\\:2}':x=w-tw-20:y=318:fontsize=28:fontcolor=yellow" \
        -c:v libx264 -preset veryslow -profile:v main -pix_fmt yuv420p -r 25 \
        -g 25 -keyint_min 25 -sc_threshold 0 -bf 0 -crf 28 -maxrate 270k -bufsize 270k \
        -c:a "$codec" -b:a 64k -ac 2 \
        -f mpegts -pes_payload_size 0 -muxdelay 0.5 -muxpreload 0.5 -pcr_period 20 -pat_period 0.1 -sdt_period 0.5 \
        -mpegts_start_pid "$pid" -mpegts_pmt_start_pid $((pid - 0x10)) \
        -metadata service_provider=Headwater -metadata service_name="$title" \
        "$name.ts"
    printf '%-14s %7d bytes\n' "$name.ts" "$(wc -c < "$name.ts")"
}

clip testcard-a "testsrc2=size=640x360:rate=25"                                440 aac 8 382976 0x100 "Test Card  A"
clip testcard-b "smptehdbars=size=640x360:rate=25"                             554 mp2 6 288000 0x200 "Test Card  B"
clip fractal-a  "mandelbrot=size=640x360:rate=25:end_scale=0.05:end_pts=200"   659 aac 8 382976 0x100 "Fractal  A"
clip fractal-b  "sierpinski=size=640x360:rate=25:seed=7"                       740 mp2 6 288000 0x200 "Fractal  B"
clip colours-a  "gradients=size=640x360:rate=25:speed=0.05:seed=3:n=4"         880 aac 8 382976 0x100 "Colours  A"
clip colours-b  "rgbtestsrc=size=640x360:rate=25"                              988 mp2 6 288000 0x200 "Colours  B"
