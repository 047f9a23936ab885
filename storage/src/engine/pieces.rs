//! Long values in pieces, so that sled never writes a blob file.
//!
//! sled writes a message of more than a quarter of a segment to a file of its own, in `blobs/`, and never syncs it. The
//! largest message is a leaf: some twenty values. So a value has at most [`PIECE_BYTES`], and a longer one is stored as a
//! *head* under its own key, which names its length, and as pieces under keys of their own, in the same batch.

use crate::engine::value::{PIECE_LETTER, Value};

/// Maximum size of a value in sled, without the envelope of a piece, in bytes.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;
/// The longest value that pieces can be joined to, in bytes. Records have at most 1 MiB.
const JOINED_MAX: usize = 16 * 1024 * 1024;

/// Key and encoded value of a piece.
pub(crate) type Piece = (Vec<u8>, Vec<u8>);

/// Returns the number of pieces of a value of this length; 0 if it is stored as it is.
pub(crate) fn number_of_pieces(length: usize) -> u16 {
    match length {
        ..=PIECE_BYTES => 0,
        _ => u16::try_from(length.div_ceil(PIECE_BYTES)).unwrap_or(u16::MAX),
    }
}

/// Returns the key of a piece of the value with this key.
pub(crate) fn piece_key(key: &[u8], number: u16) -> Vec<u8> {
    let mut piece = Vec::with_capacity(key.len() + 3);
    piece.push(PIECE_LETTER);
    piece.extend_from_slice(key);
    piece.extend_from_slice(&number.to_be_bytes());
    piece
}

/// Returns the key of the value that a piece belongs to, and the number of the piece.
pub(crate) fn parse_piece_key(piece: &[u8]) -> Option<(&[u8], u16)> {
    let (key, number) = piece.get(1..)?.split_last_chunk()?;
    Some((key, u16::from_be_bytes(*number)))
}

/// Splits an encoded value that is too long: returns its head, and the pieces with their keys.
pub(crate) fn split(key: &[u8], bytes: &[u8]) -> (Vec<u8>, Vec<Piece>) {
    // Head and pieces name the commit of the value, so that pieces of different commits are never joined.
    let commit = Value::decode(bytes).map_or(0, |it| it.commit);
    let length = u32::try_from(bytes.len()).expect("records have at most 1 MiB").to_be_bytes().to_vec();
    let head = Value { is_split: true, ..Value::new(key.to_owned(), commit, length) }.encode();
    let pieces = bytes.chunks(PIECE_BYTES).zip(0..).map(|(payload, number)| {
        let key = piece_key(key, number);
        (key.clone(), Value::new(key, commit, payload.to_owned()).encode())
    });
    (head, pieces.collect())
}

/// Returns the length of the value that these bytes are the head of. `None` if the value is not in pieces.
fn joined_length(head: &Value) -> Option<usize> {
    let length = <[u8; 4]>::try_from(&*head.payload).ok().filter(|_| head.is_split)?;
    Some(u32::from_be_bytes(length) as usize).filter(|it| *it <= JOINED_MAX)
}

/// Returns whether these bytes can be the head of a value. Cheaper than decoding each value.
pub(crate) fn is_head(bytes: &[u8]) -> bool {
    bytes.len() <= 128 && bytes.get(13).is_some_and(|flags| flags & 2 == 2)
}

/// Joins the pieces of a value. Returns `None` if this is not a head, or if pieces are missing or damaged.
pub(crate) fn join<E>(
    key: &[u8],
    bytes: &[u8],
    mut piece: impl FnMut(&[u8]) -> Result<Option<Value>, E>,
) -> Result<Option<Vec<u8>>, E> {
    let Ok(head) = Value::decode(bytes) else { return Ok(None) };
    let Some(length) = joined_length(&head) else { return Ok(None) };
    let mut joined = Vec::with_capacity(length);
    for number in 0..number_of_pieces(length) {
        match piece(&piece_key(key, number))? {
            Some(piece) if piece.commit == head.commit => joined.extend_from_slice(&piece.payload),
            _ => return Ok(None),
        }
    }
    Ok(Some(joined).filter(|it| it.len() == length))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::value::DiskKey;

    fn value(commit: u64, length: usize) -> (Vec<u8>, Vec<u8>) {
        let key = DiskKey::Single { collection: "notes".to_owned(), id: 7, version: 0 }.encode();
        let payload = (0..length).map(|at| (at % 251) as u8).collect();
        (key.clone(), Value::new(key, commit, payload).encode())
    }

    fn joined(key: &[u8], head: &[u8], pieces: &BTreeMap<Vec<u8>, Vec<u8>>) -> Option<Vec<u8>> {
        join(key, head, |piece| {
            Ok::<_, ()>(pieces.get(piece).and_then(|it| Value::decode_at(piece, it).ok()))
        })
        .unwrap()
    }

    #[test]
    fn pieces_of_every_length_are_joined_again() {
        for length in [PIECE_BYTES, 2 * PIECE_BYTES - 60, 2 * PIECE_BYTES, 1024 * 1024] {
            let (key, bytes) = value(3, length);
            let (head, pieces) = split(&key, &bytes);
            assert_eq!(pieces.len(), usize::from(number_of_pieces(bytes.len())));
            assert!(pieces.iter().all(|it| it.1.len() <= PIECE_BYTES + 100), "a piece is too long");
            assert!(matches!(DiskKey::parse(&pieces[1].0), Some(DiskKey::Piece { number: 1, .. })));
            assert_eq!(parse_piece_key(&pieces[1].0), Some((&*key, 1)));
            let pieces = pieces.into_iter().collect();
            assert_eq!(joined(&key, &head, &pieces).unwrap(), bytes);
        }
        let (key, bytes) = value(3, 100);
        assert_eq!((number_of_pieces(bytes.len()), joined(&key, &bytes, &BTreeMap::new())), (0, None));
    }

    #[test]
    fn missing_pieces_and_pieces_of_another_commit_are_damage() {
        let ((key, bytes), (_, other)) = (value(3, 40_000), value(4, 40_000));
        let (head, pieces) = split(&key, &bytes);
        let mut pieces: BTreeMap<_, _> = pieces.into_iter().collect();
        let (second, intact) = pieces.last_entry().map(|it| (it.key().clone(), it.get().clone())).unwrap();
        pieces.remove(&second);
        assert_eq!(joined(&key, &head, &pieces), None);
        pieces.extend(split(&key, &other).1.pop());
        assert_eq!(joined(&key, &head, &pieces), None);
        pieces.insert(second, intact);
        assert_eq!(joined(&key, &head, &pieces), Some(bytes));
        let error = Value::decode_at(&key, &head).unwrap_err();
        assert!(error.to_string().contains("piece"), "{error}");
    }
}
