//! The account that is at its limit, and the sentence about it.

use std::fmt;
use std::time::Duration;

use domain::plan::SlotPool;

/// The account that is at its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullPool {
    /// Name of the account.
    pub account: String,
    /// Name of its server group, if that is at its limit and not the account.
    pub server_group: Option<String>,
    /// Age of its oldest lease.
    pub since: Duration,
    /// Its maximum number of connections.
    pub max_streams: u32,
    /// The maximum was not configured but discovered by a refusal of the provider.
    pub is_discovered: bool,
    /// The provider says that all its connections are in use now, or that it has no more. The maximum is the number of the
    /// gateway's own.
    pub is_told: bool,
    /// How many of its connections are reserved for recordings that begin soon.
    pub n_reserved: u32,
    /// The nodes of the cluster could not be asked, so it is not known whether it is at its limit.
    pub is_unknown: bool,
}

impl FullPool {
    /// Creates the state of an account whose device says that all its connections are in use, while `n_used` are ours.
    pub(crate) fn told(pool: &SlotPool, n_used: u32) -> Self {
        Self {
            account: pool.account_name.clone(),
            server_group: None,
            since: Duration::ZERO,
            max_streams: n_used,
            is_discovered: true,
            is_told: true,
            n_reserved: 0,
            is_unknown: false,
        }
    }
}

impl fmt::Display for FullPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, max_streams: max, .. } = self;
        if self.is_unknown {
            return write!(
                f,
                "account \"{account}\" has a limit of connections, and this node cannot ask the other nodes of the \
                 cluster for one"
            );
        }
        if self.is_told {
            return write!(
                f,
                "all tuners of the device of account \"{account}\" are in use ({max} by this gateway)"
            );
        }
        let streams = if *max == 1 { "stream" } else { "streams" };
        match (&self.server_group, self.is_discovered) {
            (Some(group), _) => write!(
                f,
                "server group \"{group}\" of account \"{account}\" is at its limit of {max} {streams}"
            )?,
            (None, false) => write!(f, "account \"{account}\" is at its limit of {max} {streams}")?,
            (None, true) => {
                write!(f, "the provider of account \"{account}\" refuses more than {max} {streams} at once")?
            }
        }
        match self.n_reserved {
            0 => Ok(()),
            1 => f.write_str(", of which 1 is reserved for a recording"),
            n => write!(f, ", of which {n} are reserved for recordings"),
        }
    }
}
