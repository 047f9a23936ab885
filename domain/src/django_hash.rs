//! Hashes of passwords that Django made, which are kept until the next login.

/// Maximum length of a password hash, in bytes.
const HASH_BYTES_MAX: usize = 256;
/// The only algorithm whose hashes can be verified.
const DJANGO_PBKDF2: &str = "pbkdf2_sha256$";
/// Maximum number of iterations of a hash. More would let a hostile export make logins take minutes.
const DJANGO_ITERATIONS_MAX: u32 = 3_000_000;

/// A hash of Django's default password hasher: `pbkdf2_sha256$iterations$salt$hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DjangoHash<'a> {
    pub iterations: u32,
    pub salt: &'a str,
    /// The 32 bytes of the hash, in base64 with padding.
    pub hash: &'a str,
}

impl<'a> DjangoHash<'a> {
    /// Parses a hash; `None` for other algorithms and for absurd values.
    pub fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(DJANGO_PBKDF2).filter(|_| text.len() <= HASH_BYTES_MAX)?;
        let mut parts = rest.split('$');
        let (iterations, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let iterations = iterations.parse().ok().filter(|it| (1..=DJANGO_ITERATIONS_MAX).contains(it))?;
        let is_whole = parts.next().is_none() && !salt.is_empty() && !hash.is_empty();
        is_whole.then_some(Self { iterations, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usable_hashes_are_parsed() {
        let good = "pbkdf2_sha256$1000000$salt$aGFzaA==";
        assert_eq!(
            DjangoHash::parse(good),
            Some(DjangoHash { iterations: 1_000_000, salt: "salt", hash: "aGFzaA==" })
        );
        let long = format!("pbkdf2_sha256$1$salt${}", "a".repeat(300));
        for text in [
            "",
            "!unusable",
            "argon2$argon2id$v=19",
            "pbkdf2_sha1$1$salt$aGFzaA==",
            "pbkdf2_sha256$0$salt$aGFzaA==",
            "pbkdf2_sha256$4000000000$salt$aGFzaA==",
            "pbkdf2_sha256$-1$salt$aGFzaA==",
            "pbkdf2_sha256$1$$aGFzaA==",
            "pbkdf2_sha256$1$salt$",
            "pbkdf2_sha256$1$salt$a$b",
            "pbkdf2_sha256$1$salt",
            &long,
        ] {
            assert_eq!(DjangoHash::parse(text), None, "{text}");
        }
    }
}
