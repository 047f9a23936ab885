//! Signatures of OpenPGP (RFC 4880 and 9580) over the manifests of repositories: those of Ed25519 and RSA keys of version 4,
//! which the tools of repositories make.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use sha2::{Digest, Sha256, Sha512};

/// Maximum length of an armored key or signature, in bytes.
const ARMOR_BYTES_MAX: usize = 64 << 10;
/// Algorithms of keys.
const RSA: [u8; 2] = [1, 3];
const EDDSA: u8 = 22;
const ED25519_NATIVE: u8 = 27;
/// Algorithms of hashes.
const SHA256: u8 = 8;
const SHA512: u8 = 10;
/// The curve Ed25519 as an object identifier.
const CURVE: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
/// Tags of packets.
const SIGNATURE: u8 = 2;
const KEYS: [u8; 2] = [6, 14];
/// Length of the numbers of an Ed25519 signature, in bytes.
const ED25519_PART: usize = 32;

/// Why a text is not used as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an armored OpenPGP public key with Ed25519 or RSA")]
pub struct WrongKey;

/// A key that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Ed25519(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

/// A signature over data.
struct Signature {
    hash: u8,
    /// The bytes that are hashed after the data.
    trailer: Vec<u8>,
    algorithm: u8,
    /// The numbers of the signature.
    numbers: Vec<u8>,
}

/// Checks that a text is a key that signatures can be verified with.
///
/// # Errors
/// It is not one.
pub(super) fn check_key(armored: &str) -> Result<(), WrongKey> {
    if keys(armored).is_empty() { Err(WrongKey) } else { Ok(()) }
}

/// Returns whether one of the keys in a text made this signature over these bytes.
pub(super) fn is_signed_by(armored_key: &str, armored_signature: &str, data: &[u8]) -> bool {
    let keys = keys(armored_key);
    let signatures = packets(armored_signature).into_iter().filter(|it| it.0 == SIGNATURE);
    let signatures: Vec<Signature> = signatures.filter_map(|it| read_signature(&it.1)).collect();
    signatures.iter().any(|signature| keys.iter().any(|key| is_valid(key, signature, data)))
}

fn keys(armored: &str) -> Vec<Key> {
    packets(armored).iter().filter(|it| KEYS.contains(&it.0)).filter_map(|it| read_key(&it.1)).collect()
}

/// Returns the tags and contents of the packets in an armored text. What cannot be read ends them.
fn packets(armored: &str) -> Vec<(u8, Vec<u8>)> {
    let mut packets = Vec::new();
    let Some(bytes) = unarmored(armored) else { return packets };
    let mut rest = &bytes[..];
    while let Some((tag, content, after)) = packet(rest) {
        packets.push((tag, content.to_vec()));
        rest = after;
    }
    packets
}

/// Returns the bytes between the lines of the armor. The checksum is left out: a wrong byte makes the signature wrong.
fn unarmored(armored: &str) -> Option<Vec<u8>> {
    if armored.len() > ARMOR_BYTES_MAX {
        return None;
    }
    let mut lines = armored.lines().map(str::trim).skip_while(|it| !it.starts_with("-----BEGIN PGP "));
    lines.next()?;
    let body = lines.skip_while(|it| it.contains(": ")).skip_while(|it| it.is_empty());
    let body: String = body.take_while(|it| !it.starts_with('=') && !it.starts_with("-----")).collect();
    STANDARD.decode(body).ok()
}

/// Returns the tag and the content of the first packet, and what follows it.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first()?;
    if head & 0x80 == 0 {
        return None;
    }
    let (tag, length, rest) = if head & 0x40 != 0 {
        let (length, rest) = new_length(rest)?;
        (head & 0x3f, length, rest)
    } else {
        // One, two or four bytes have the length. An undefined one is for data only.
        let n = [1, 2, 4].get(usize::from(head & 3)).copied()?;
        let (length, rest) = rest.split_at_checked(n)?;
        ((head >> 2) & 0x0f, number(length)?, rest)
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

fn new_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [one @ 0..=191, rest @ ..] => Some((usize::from(*one), rest)),
        [one @ 192..=223, two, rest @ ..] => {
            Some(((usize::from(*one) - 192) * 256 + usize::from(*two) + 192, rest))
        }
        [255, rest @ ..] => {
            let (length, rest) = rest.split_at_checked(4)?;
            Some((number(length)?, rest))
        }
        _ => None,
    }
}

fn number(bytes: &[u8]) -> Option<usize> {
    let value = bytes.iter().fold(0_u64, |all, it| (all << 8) | u64::from(*it));
    usize::try_from(value).ok()
}

/// Returns a number of many bytes, and what follows it.
fn big_number(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (bits, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(number(bits)?.div_ceil(8))
}

fn read_key(content: &[u8]) -> Option<Key> {
    // Version, four bytes of time, algorithm.
    let [4, _, _, _, _, algorithm, rest @ ..] = content else { return None };
    if RSA.contains(algorithm) {
        let (n, rest) = big_number(rest)?;
        let (e, _) = big_number(rest)?;
        return Some(Key::Rsa { n: n.to_vec(), e: e.to_vec() });
    }
    match *algorithm {
        EDDSA => {
            let (length, rest) = rest.split_first()?;
            let (curve, rest) = rest.split_at_checked(usize::from(*length))?;
            let (point, _) = big_number(rest)?;
            // A prefix says that the point is in the form of the curve.
            let point = point.strip_prefix(&[0x40])?;
            (curve == CURVE && point.len() == ED25519_PART).then(|| Key::Ed25519(point.to_vec()))
        }
        ED25519_NATIVE => rest.get(..ED25519_PART).map(|it| Key::Ed25519(it.to_vec())),
        _ => None,
    }
}

fn read_signature(content: &[u8]) -> Option<Signature> {
    // Version, type (0 is a signature over bytes), algorithms, length of the hashed parts.
    let [4, 0, algorithm, hash, high, low, rest @ ..] = content else { return None };
    let (hashed, rest) = rest.split_at_checked(number(&[*high, *low])?)?;
    let (length, rest) = rest.split_at_checked(2)?;
    let (_, rest) = rest.split_at_checked(number(length)?)?;
    // Two bytes of the hash only make the search faster.
    let numbers = rest.get(2..)?.to_vec();
    let mut trailer = content[..6 + hashed.len()].to_vec();
    let length = u32::try_from(trailer.len()).ok()?;
    trailer.extend([4, 0xff]);
    trailer.extend(length.to_be_bytes());
    Some(Signature { hash: *hash, trailer, algorithm: *algorithm, numbers })
}

fn is_valid(key: &Key, signature: &Signature, data: &[u8]) -> bool {
    let signed = [data, &signature.trailer].concat();
    match key {
        Key::Rsa { n, e } if RSA.contains(&signature.algorithm) => {
            let Some((number, _)) = big_number(&signature.numbers) else { return false };
            let Some(number) = padded(number, n.len()) else { return false };
            let parameters: &RsaParameters = match signature.hash {
                SHA256 => &RSA_PKCS1_2048_8192_SHA256,
                SHA512 => &RSA_PKCS1_2048_8192_SHA512,
                _ => return false,
            };
            RsaPublicKeyComponents { n, e }.verify(parameters, &signed, &number).is_ok()
        }
        Key::Ed25519(point) => {
            let Some(numbers) = ed25519_numbers(signature) else { return false };
            let digest = match signature.hash {
                SHA256 => Sha256::digest(&signed).to_vec(),
                SHA512 => Sha512::digest(&signed).to_vec(),
                _ => return false,
            };
            UnparsedPublicKey::new(&ED25519, point).verify(&digest, &numbers).is_ok()
        }
        Key::Rsa { .. } => false,
    }
}

fn ed25519_numbers(signature: &Signature) -> Option<Vec<u8>> {
    match signature.algorithm {
        EDDSA => {
            let (r, rest) = big_number(&signature.numbers)?;
            let (s, _) = big_number(rest)?;
            Some([padded(r, ED25519_PART)?, padded(s, ED25519_PART)?].concat())
        }
        ED25519_NATIVE => signature.numbers.get(..2 * ED25519_PART).map(<[u8]>::to_vec),
        _ => None,
    }
}

/// Puts zeros before a number that is shorter than `length`.
fn padded(number: &[u8], length: usize) -> Option<Vec<u8>> {
    let missing = length.checked_sub(number.len())?;
    Some([vec![0; missing], number.to_vec()].concat())
}

/// A key and a signature over [`SIGNED`] that GnuPG 2.2 made with it.
#[cfg(test)]
pub(super) const ED25519_SAMPLE: [&str; 2] = [
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\
     mDMEaw3t+hYJKwYBBAHaRw8BAQdA8jAD1AWhd1ng5ulmxNkLuWHw9BC7BN5Qb1rd\n\
     k6BlNim0FFRlc3QgPHRAZXhhbXBsZS5jb20+iJAEExYIADgWIQTwj2rLEbWW+WM/\n\
     57vkRbWzGj+JkAUCaw3t+gIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRDk\n\
     RbWzGj+JkJxkAQDvtB995v5YRX8M9sssW/iW+nVePcNeIDi8nXwzrwmZnAEAgwHD\n\
     lEok688HiimqyGIbNsmoof181yJ1p+6CuSmPBgg=\n\
     =h1n3\n\
     -----END PGP PUBLIC KEY BLOCK-----",
    "-----BEGIN PGP SIGNATURE-----\n\n\
     iIQEABYIACwWIQTwj2rLEbWW+WM/57vkRbWzGj+JkAUCaw3uMQ4cdEBleGFtcGxl\n\
     LmNvbQAKCRDkRbWzGj+JkGpXAQD7k2CFNlWrzBbU7A/remMP2bu0cB6QbV6LryUd\n\
     28VpwwD9HQMyZ8ctsuZC2Sxa6s+lXP/U38NIKWwXr4nFbFopuQY=\n\
     =+wg9\n\
     -----END PGP SIGNATURE-----",
];
#[cfg(test)]
const RSA_SAMPLE: [&str; 2] = [
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\
     mQENBGsN7foBCACh4nAy+FDX8QwqutFHvz47EY7Vicf5PdTItStTalg8nkY5J5yF\n\
     cM3uraO4ljmDPCD21AGHDMimlC+QNi7LtbWVMu5wPhouYT/XdEZKaFbLyse5F/zj\n\
     dKwWocryS9q38J8nrEAzz1tSCEYK3e45AH2Xo8U/DYVo/TohIzS41B5xavBMHoQV\n\
     Wt3dNclOFHCEcxUNvMjXw4uoXDrCsYy/IXfI9TY5idST8P9goE79Ik5LrqGudbSJ\n\
     UiLPsUw/ufr5xBeLu2maX6y3ZbYLT437v6q9ZRlFh3FdY0p2ACnYZCToY6r3dqyP\n\
     KTCVOgS13Qgbtb5iNUXVaPCdkr5LZlWStEn7ABEBAAG0E1JzYSA8ckBleGFtcGxl\n\
     LmNvbT6JAU4EEwEKADgWIQTrvpxkuXYw833sFmgbl8ECMkbV9gUCaw3t+gIbAwUL\n\
     CQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRAbl8ECMkbV9uqwB/wL0CdKfrfq57y6\n\
     RgSslT1Ah85qXLT/bKEp1lWeKzWVDC3syZx0zLCEOT+itguhk2MCpoB6yufNRZ5X\n\
     EuUFYbfQh95hDWgSkaTY65Dg+7BhV8pdj/QvMCYodHnILO+isfzoN0yjxce9ZJ5s\n\
     4AFq50wkwBFQFkdVdtOeWiwEFx0pS5uC3onSfbGIL1YR6daoXdl3Ff5hmSRsffjP\n\
     wVQS43wNetJtnuFKrtsbQYUS62XbiP6hlV87JPMsOlGhvXInDYx5KEotmsdOsmQA\n\
     aq2ilf9UJTd7tpH/qsat+xKpWmV6ltmClcPlrPcGdsOasAB8Rq5suJ7A/nn4nH53\n\
     8INJTpc7\n\
     =spp4\n\
     -----END PGP PUBLIC KEY BLOCK-----",
    "-----BEGIN PGP SIGNATURE-----\n\n\
     iQFCBAABCgAsFiEE676cZLl2MPN97BZoG5fBAjJG1fYFAmsN7jEOHHJAZXhhbXBs\n\
     ZS5jb20ACgkQG5fBAjJG1fZr2gf+P5TK+Rm/K0h1SCGIaG9W5GBus/d7TbDnOS/E\n\
     uh+Z8G8+uaSrywwqMLuqQ2aSRDpLpTPz49DXDrNfqH6lNXQADJ2H8uHbcsVEnSqd\n\
     VX6sPc16EU/DIDz4tja5vapSL39xPZH1J7Osn4GXxhfgPXyQ9qyQ4jOpmejAGnEa\n\
     7d9NwJVtYwk4N2QZkoj6kmpCZ+0ZGGRd2/fnhuFbrhS51TI8XVkjqwI+l8HLI61S\n\
     YvPz6BnlFDnc5tpCM4EfpXs2j8jEjQdTjpW+7M8CBTR92Te/fCa1C/cSBKsMyW4y\n\
     RrBf/jLxeSPJ9Z8pd9a4upZoMSLIvRSaHDpCIcAErKNGKXf0TA==\n\
     =nHhe\n\
     -----END PGP SIGNATURE-----",
];
#[cfg(test)]
pub(super) const SIGNED: &str = "{\"plugins\":[],\"registry_name\":\"Signed\"}\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_the_accepted_key_are_verified_and_no_others() {
        for [key, signature] in [ED25519_SAMPLE, RSA_SAMPLE] {
            assert_eq!(check_key(key), Ok(()));
            assert!(is_signed_by(key, signature, SIGNED.as_bytes()));
            assert!(!is_signed_by(key, signature, SIGNED.trim_end().as_bytes()), "each byte counts");
            assert!(!is_signed_by(key, signature, b""));
            assert!(!is_signed_by(key, key, SIGNED.as_bytes()));
        }
        let ([one, of_one], [other, of_other]) = (ED25519_SAMPLE, RSA_SAMPLE);
        assert!(
            !is_signed_by(one, of_other, SIGNED.as_bytes())
                && !is_signed_by(other, of_one, SIGNED.as_bytes())
        );
    }

    #[test]
    fn damaged_keys_and_signatures_are_refused_at_each_byte() {
        for wrong in [
            "",
            "key",
            "-----BEGIN PGP PUBLIC KEY BLOCK-----",
            "-----BEGIN PGP X-----\n\n!!\n-----END",
            ED25519_SAMPLE[1],
        ] {
            assert_eq!(check_key(wrong), Err(WrongKey), "{wrong}");
        }
        let [key, signature] = ED25519_SAMPLE;
        let bytes = unarmored(signature).unwrap();
        let armored = |bytes: &[u8]| format!("-----BEGIN PGP SIGNATURE-----\n\n{}\n", STANDARD.encode(bytes));
        assert!(is_signed_by(key, &armored(&bytes), SIGNED.as_bytes()));
        for n in 0..bytes.len() {
            assert!(!is_signed_by(key, &armored(&bytes[..n]), SIGNED.as_bytes()), "cut at {n}");
        }
        // The last numbers are the signature itself.
        for n in bytes.len() - 60..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[n] ^= 0x55;
            assert!(!is_signed_by(key, &armored(&wrong), SIGNED.as_bytes()), "byte {n}");
        }
    }
}
