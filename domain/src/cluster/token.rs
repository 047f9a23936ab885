//! Join tokens: the text that a person copies from a cluster to a machine that joins it.
//!
//! ```text
//!   hwj1-7-e3b0c442…b855-5f4dcc3b…cf99
//!        │ │             └ secret, 32 hexadecimal digits
//!        │ └ fingerprint of the cluster's certificate authority, 64 digits: the joining node sends the secret to no other
//!        └ number of the ticket
//! ```
//!
//! The cluster keeps a [`JoinTicket`], which has only a digest of the secret. It is redeemed once.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::record::NodeId;

/// Time for which a token is valid, in milliseconds: an hour.
pub const TOKEN_MS: i64 = 60 * 60 * 1000;
/// Maximum length of the text of a token.
pub const TOKEN_CHARS_MAX: usize = PREFIX.len() + 10 + 1 + 64 + 1 + 32;

const PREFIX: &str = "hwj1-";

/// The tasks of a node in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// Opens connections to providers, serves viewers, runs jobs.
    #[default]
    Full,
    /// Serves viewers. Holds no secret of a provider.
    Edge,
}

/// A join token. It prints without the secret, except by [`JoinToken::to_text`].
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// The id of the [`JoinTicket`].
    pub ticket: u32,
    /// SHA-256 of the certificate of the authority.
    pub authority: [u8; 32],
    pub secret: [u8; 16],
}

impl JoinToken {
    /// Returns the text that a person copies.
    pub fn to_text(&self) -> String {
        format!(
            "{PREFIX}{}-{}-{}",
            self.ticket,
            HEXLOWER.encode(&self.authority),
            HEXLOWER.encode(&self.secret)
        )
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// The text is not a join token. It is not repeated, because a part of it may be secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a complete join token; copy all of what `headwater cluster token` prints")]
pub struct InvalidToken;

/// Accepts exactly what [`JoinToken::to_text`] returns, and white space around it.
impl FromStr for JoinToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let parse = |text: &str| {
            let mut parts = text.strip_prefix(PREFIX)?.split('-');
            let ticket = parts.next()?;
            let token = Self {
                ticket: ticket.parse().ok()?,
                authority: bytes_from_hex(parts.next()?)?,
                secret: bytes_from_hex(parts.next()?)?,
            };
            // Neither a sign nor leading zeros.
            let is_exact = parts.next().is_none() && token.ticket.to_string() == ticket;
            is_exact.then_some(token)
        };
        parse(text.trim()).ok_or(InvalidToken)
    }
}

/// Reads exactly this many bytes in lower-case digits.
fn bytes_from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// The cluster's side of a join token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinTicket {
    pub id: u32,
    /// SHA-256 of the secret.
    pub digest: [u8; 32],
    /// The role that the node gets.
    pub role: NodeRole,
    /// Milliseconds since 1970, like the other times.
    pub created_at: i64,
    /// The node that used it.
    #[serde(default)]
    pub used_by: Option<NodeId>,
}

impl fmt::Debug for JoinTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = f.debug_struct("JoinTicket");
        printed.field("id", &self.id).field("used_by", &self.used_by).finish_non_exhaustive()
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// The ticket does not exist, or the secret is not its own. They are not told apart.
    #[error("the join token is not one of this cluster")]
    Unknown,
    #[error("the join token was used already; make another one with `headwater cluster token`")]
    Used,
    #[error("the join token has expired; make another one with `headwater cluster token`")]
    Expired,
}

impl JoinTicket {
    /// Redeems the ticket for a node. The caller writes the ticket in the same commit that admits the node, so of two who
    /// try at once only one succeeds.
    ///
    /// # Errors
    /// If the digest is not that of the secret, if the ticket was used, or if it has expired.
    pub fn redeem(&mut self, digest: &[u8; 32], node: NodeId, now: i64) -> Result<NodeRole, TokenRefusal> {
        // All bytes are compared, whichever differs first.
        let difference = self.digest.iter().zip(digest).fold(0, |sum, (one, other)| sum | (one ^ other));
        if difference != 0 {
            return Err(TokenRefusal::Unknown);
        }
        if self.used_by.is_some() {
            return Err(TokenRefusal::Used);
        }
        if self.has_expired(now) {
            return Err(TokenRefusal::Expired);
        }
        self.used_by = Some(node);
        Ok(self.role)
    }

    /// Returns whether it is of no more use. A clock that went back by more than the whole time counts as well.
    pub fn has_expired(&self, now: i64) -> bool {
        now >= self.created_at.saturating_add(TOKEN_MS) || now <= self.created_at.saturating_sub(TOKEN_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        JoinToken { ticket: 7, authority: [0xe3; 32], secret: [0x5f; 16] }
    }

    fn ticket() -> JoinTicket {
        JoinTicket { id: 7, digest: [1; 32], role: NodeRole::Edge, created_at: 1_000, used_by: None }
    }

    #[test]
    fn a_token_is_read_as_printed_and_its_secret_is_not_in_messages() {
        let text = token().to_text();
        assert_eq!(text, format!("hwj1-7-{}-{}", "e3".repeat(32), "5f".repeat(16)));
        assert_eq!(text.parse(), Ok(token()));
        assert_eq!(format!(" {text}\n").parse(), Ok(token()));
        assert!(!format!("{:?} {}", token(), InvalidToken).contains("5f5f"));
        let largest = JoinToken { ticket: u32::MAX, ..token() };
        assert_eq!(largest.to_text().len(), TOKEN_CHARS_MAX);
    }

    #[test]
    fn nothing_else_is_a_token() {
        let text = token().to_text();
        for length in 0..text.len() {
            assert_eq!(text[..length].parse::<JoinToken>(), Err(InvalidToken), "cut to {length}");
        }
        for wrong in [
            format!("{text}0"),
            format!("{text}-"),
            text.replace("hwj1", "hwj2"),
            text.replace("-7-", "-07-"),
            text.replace("-7-", "-+7-"),
            text.replace("-7-", "-4294967296-"),
            text.replace("e3e3", "E3e3"),
            text.replace("5f5f", "5g5f"),
            text.replace("5f5f5f5f", "5f5f5\u{e9}5"),
            text.replace("-7-", "- 7-"),
        ] {
            assert_eq!(wrong.parse::<JoinToken>(), Err(InvalidToken), "{wrong}");
        }
    }

    #[test]
    fn a_ticket_is_redeemed_once_within_an_hour() {
        let mut once = ticket();
        assert_eq!(once.redeem(&[2; 32], NodeId(4), 2_000), Err(TokenRefusal::Unknown));
        assert_eq!(once.redeem(&[1; 32], NodeId(4), 1_000 + TOKEN_MS), Err(TokenRefusal::Expired));
        assert_eq!(once.redeem(&[1; 32], NodeId(4), 1_000 - TOKEN_MS), Err(TokenRefusal::Expired));
        assert_eq!(once.used_by, None);
        assert_eq!(once.redeem(&[1; 32], NodeId(4), 999 + TOKEN_MS), Ok(NodeRole::Edge));
        assert_eq!(once.redeem(&[1; 32], NodeId(5), 2_000), Err(TokenRefusal::Used));
        assert_eq!(once.used_by, Some(NodeId(4)));
        assert!(!format!("{once:?}").contains("[1"));
    }
}
