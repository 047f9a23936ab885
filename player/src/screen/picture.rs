//! A text as a picture, with a bitmap font of our own process: ffmpeg can be built without text, and a container can be
//! without fonts.

use font8x8::legacy::BASIC_LEGACY;

/// Width of the picture in pixels; it is enlarged by ffmpeg.
const WIDTH: usize = 320;
/// Height of the picture in pixels.
const HEIGHT: usize = 180;
/// Width and height of a character in pixels.
const CHARACTER: usize = 8;
/// Distance between the tops of two lines in pixels.
const LINE: usize = 20;
/// Maximum length of a line, in characters.
pub(super) const LINE_CHARS_MAX: usize = WIDTH / CHARACTER;

/// Draws lines of ASCII text in white on black, centred, as a portable bitmap (P4). Other characters are left blank.
/// Text beyond the edges is left out.
pub(super) fn bitmap(lines: &[&str]) -> Vec<u8> {
    const ROW: usize = WIDTH / 8;
    let mut image = format!("P4\n{WIDTH} {HEIGHT}\n").into_bytes();
    let start = image.len();
    // A set bit is black.
    image.resize(start + ROW * HEIGHT, 0xFF);
    let pixels = &mut image[start..];
    let top = (HEIGHT.saturating_sub(lines.len() * LINE)) / 2;
    for (n, line) in lines.iter().enumerate() {
        let text: Vec<char> = line.chars().take(LINE_CHARS_MAX).collect();
        let left = (LINE_CHARS_MAX - text.len()) / 2;
        for (column, it) in text.into_iter().enumerate() {
            let Some(glyph) = BASIC_LEGACY.get(it as usize) else { continue };
            for (row, bits) in glyph.iter().enumerate() {
                // The lowest bit of a glyph is its leftmost pixel, the highest one that of a bitmap.
                if let Some(byte) = pixels.get_mut((top + n * LINE + row) * ROW + left + column) {
                    *byte = !bits.reverse_bits();
                }
            }
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_drawn_in_white_and_cut_to_the_picture() {
        let head = b"P4\n320 180\n".len();
        let white = |image: &[u8]| image[head..].iter().map(|it| it.count_zeros()).sum::<u32>();
        assert_eq!(white(&bitmap(&[])), 0);
        let image = bitmap(&["!"]);
        assert_eq!(image.len(), head + 320 * 180 / 8);
        let glyph: u32 = BASIC_LEGACY['!' as usize].iter().map(|it| it.count_ones()).sum();
        assert_eq!(white(&image), glyph);
        assert_eq!(white(&bitmap(&[&"!".repeat(100)])), 40 * glyph);
        assert_eq!(white(&bitmap(&["\u{e4}\u{1f600}"])), 0);
        assert_eq!(bitmap(&["a"; 100]).len(), image.len());
    }
}
