//! The codes with which the service refuses a request.

/// Seconds in an hour.
const HOUR: u64 = 3_600;

/// Why the service refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ServiceFault {
    #[error("Schedules Direct is offline for maintenance")]
    Offline,
    #[error("the account at Schedules Direct has expired")]
    Expired,
    #[error("Schedules Direct refuses the user name or password")]
    BadLogin,
    #[error("the account at Schedules Direct is locked after too many failed logins")]
    Locked,
    #[error("the account at Schedules Direct is disabled")]
    Disabled,
    #[error("the login at Schedules Direct has expired")]
    TokenExpired,
    #[error("Schedules Direct: the daily quota of logins is used up")]
    TooManyLogins,
    #[error("Schedules Direct sees the account at too many addresses")]
    TooManyAddresses,
    #[error("Schedules Direct: the daily quota of lineup changes is used up")]
    NoChangesLeft,
    #[error("the account at Schedules Direct has the maximum number of lineups")]
    TooManyLineups,
    #[error("the account at Schedules Direct has no lineups; add one")]
    NoLineups,
    #[error("the account at Schedules Direct has this lineup already")]
    DuplicateLineup,
    #[error("Schedules Direct: unknown lineup")]
    UnknownLineup,
    #[error("the account at Schedules Direct does not have this lineup")]
    NotAdded,
    #[error("Schedules Direct: unknown country or postal code")]
    UnknownPlace,
    #[error("Schedules Direct is still preparing the answer")]
    Queued,
    #[error("Schedules Direct answered with code {0}")]
    Other(i64),
}

impl ServiceFault {
    /// Returns the fault of a code. `None` for code 0.
    pub fn from_code(code: i64) -> Option<Self> {
        Some(match code {
            0 => return None,
            3000 => Self::Offline,
            4001 => Self::Expired,
            4002 | 4003 => Self::BadLogin,
            4004 => Self::Locked,
            4005 | 4007 | 4008 => Self::Disabled,
            1004 | 4006 => Self::TokenExpired,
            4009 => Self::TooManyLogins,
            4010 => Self::TooManyAddresses,
            4100 => Self::NoChangesLeft,
            4101 => Self::TooManyLineups,
            4102 => Self::NoLineups,
            2100 => Self::DuplicateLineup,
            2101 | 2102 | 2104 | 2105 | 2106 => Self::UnknownLineup,
            2103 => Self::NotAdded,
            2108 | 2050 | 2052 | 2053 | 2054 => Self::UnknownPlace,
            2107 | 6001 | 7100 => Self::Queued,
            code => Self::Other(code),
        })
    }

    /// Returns for how many seconds nothing may be requested for this account, because another request would fail as
    /// well and could lock the account.
    pub fn pause_seconds(self) -> Option<u64> {
        match self {
            Self::Offline => Some(HOUR),
            Self::BadLogin | Self::Locked => Some(HOUR / 4),
            Self::Expired | Self::Disabled | Self::TooManyAddresses => Some(HOUR),
            Self::TooManyLogins => Some(24 * HOUR),
            _ => None,
        }
    }
}
