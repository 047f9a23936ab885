//! Removes the secrets of an integration from texts that are logged, because targets repeat what they get.

use domain::integration::{Integration, Target};
use domain::secret::Secret;

/// Shorter texts are not searched for: they are not secret, and stand in many words.
const SECRET_BYTES_MIN: usize = 6;
/// The same for parts of an address, which are often plain words.
const PART_BYTES_MIN: usize = 12;
/// Headers whose values are not secret.
const PLAIN_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// The secrets of an integration.
pub(super) struct Redactor {
    /// The longest first, because a secret may contain another one.
    secrets: Vec<String>,
}

impl Redactor {
    pub(super) fn new(integration: &Integration) -> Self {
        let mut secrets = Vec::new();
        if let Target::Webhook(webhook) = &integration.target {
            let plain = |name: &str| PLAIN_HEADERS.iter().any(|it| name.eq_ignore_ascii_case(it));
            for (_, value) in webhook.headers.iter().filter(|it| !plain(&it.0)) {
                secrets.push(value.expose().to_owned());
                // `Bearer …` and the like.
                secrets.extend(value.expose().split_once(' ').map(|it| it.1.to_owned()));
            }
            if let Some(signing) = &webhook.signing {
                secrets.push(signing.secret.expose().to_owned());
                secrets.extend(signing.old.iter().map(|it| it.0.expose().to_owned()));
            }
            secrets.extend(webhook.options.values().cloned());
            add_address(webhook.url.expose(), &mut secrets);
        }
        let mut redactor = Self { secrets };
        redactor.sort();
        redactor
    }

    /// Adds addresses of streams, and what they contain.
    pub(super) fn with_addresses<'a>(mut self, addresses: impl Iterator<Item = &'a Secret>) -> Self {
        for address in addresses {
            add_address(address.expose(), &mut self.secrets);
        }
        self.sort();
        self
    }

    fn sort(&mut self) {
        self.secrets.retain(|it| it.len() >= SECRET_BYTES_MIN);
        self.secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
        self.secrets.dedup();
    }

    /// Removes nothing.
    pub(super) fn none() -> Self {
        Self { secrets: Vec::new() }
    }

    /// Returns the text without secrets.
    pub(super) fn clean(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| match text.contains(&**secret) {
            true => text.replace(&**secret, "…"),
            false => text,
        })
    }

    /// Returns the beginning of a text without secrets, of about this many bytes. A secret that is cut off at the end is
    /// not kept in part.
    pub(super) fn beginning(&self, text: &str, bytes_max: usize) -> String {
        let clean = self.clean(text);
        clean[..clean.floor_char_boundary(bytes_max)].to_owned()
    }
}

/// Adds the parts of an address that may be secrets.
fn add_address(url: &str, secrets: &mut Vec<String>) {
    secrets.push(url.to_owned());
    let Ok(url) = url::Url::parse(url) else { return };
    secrets.extend(url.password().map(str::to_owned));
    let beyond_host = &url[url::Position::BeforePath..];
    secrets.push(beyond_host.to_owned());
    let values = url.query_pairs().map(|it| it.1.into_owned());
    let segments = url.path_segments().into_iter().flatten().map(str::to_owned);
    secrets.extend(values.chain(segments).filter(|it| it.len() >= PART_BYTES_MIN));
}
