//! Texts whose case and number of blanks do not count: how they are compared, and their hash.

/// Calls `visit` with each byte of the text in lower case, with one blank between words and none around them.
pub(super) fn each_normal_byte(text: &str, mut visit: impl FnMut(u8)) {
    let mut has_blank = false;
    let mut has_begun = false;
    let mut buffer = [0; 4];
    for it in text.chars() {
        if it.is_whitespace() {
            has_blank = has_begun;
            continue;
        }
        if std::mem::take(&mut has_blank) {
            visit(b' ');
        }
        has_begun = true;
        match it.is_ascii() {
            true => visit((it as u8).to_ascii_lowercase()),
            false => {
                it.to_lowercase().for_each(|it| it.encode_utf8(&mut buffer).bytes().for_each(&mut visit))
            }
        }
    }
}

/// Returns whether texts are the same apart from case and the number of blanks.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let normal = |it: &str| {
        let mut bytes = Vec::with_capacity(it.len());
        each_normal_byte(it, |byte| bytes.push(byte));
        bytes
    };
    one == other || normal(one) == normal(other)
}

/// Returns the hash of a text (FNV-1a, 64 bits).
pub(super) fn normal_hash(text: &str) -> u64 {
    let mut hash = FNV_BASIS;
    each_normal_byte(text, |byte| hash = fnv(hash, byte));
    hash
}

/// The hash of no bytes.
pub(super) const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the hash of the bytes of `hash` and one more.
pub(super) fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}
