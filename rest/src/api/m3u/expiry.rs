//! When the credentials of accounts expire.

use domain::account::Account;
use domain::ids::ProfileId;
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;

/// When the credentials of a profile expire.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ExpirationView {
    /// Id of the profile.
    #[field(example = "2")]
    profile_id: ProfileId,
    /// Name of the profile.
    #[field(example = "Default")]
    profile_name: String,
    /// When the credentials expire.
    exp_date: Time,
    /// Whether the profile is used.
    is_active: bool,
}

/// Returns the profiles whose credentials expire, the first to expire first.
pub(super) fn all(account: &Account) -> Vec<ExpirationView> {
    let mut all: Vec<_> = account.profiles.iter().filter_map(|it| Some((it.expires_at?, it))).collect();
    all.sort_by_key(|(expires_at, profile)| (*expires_at, profile.id));
    let view = |(expires_at, profile): (i64, &domain::account::AccountProfile)| ExpirationView {
        profile_id: profile.id,
        profile_name: profile.name.clone(),
        exp_date: Time(expires_at),
        is_active: profile.is_active,
    };
    all.into_iter().map(view).collect()
}

/// Returns when the first credentials of an active profile expire.
pub(super) fn earliest(account: &Account) -> Option<Time> {
    let active = account.profiles.iter().filter(|it| it.is_active);
    active.filter_map(|it| it.expires_at).min().map(Time)
}
