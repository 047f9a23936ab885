//! Notices about logins at providers and accounts of users that end soon.

use domain::account::Account;
use domain::event::{Event, EventBody, RefreshRef};
use domain::ids::{AccountId, ProfileId, UserId};
use domain::panel::{ExpiryNotice, ProfileInfo, due_notice};
use domain::user::User;
use storage::{Models, Write};

/// A notice that has to be given.
pub(super) struct DueNotice {
    of: Ending,
    notice: ExpiryNotice,
}

/// The login or the account that ends.
enum Ending {
    Profile { account: RefreshRef, profile: ProfileId, profile_name: String },
    User { id: UserId, name: String },
}

/// Returns the notices that are due.
pub(super) fn due_notices(models: &Models, now: i64) -> Vec<DueNotice> {
    let mut due = due_of_profiles(models, now);
    for user in models.users.load().iter().filter(|it| it.is_active) {
        if let Some(notice) = user.expires_at.and_then(|it| due_notice(it, user.expiry_notice, now)) {
            due.push(DueNotice { of: Ending::User { id: user.id, name: user.username.clone() }, notice });
        }
    }
    due
}

fn due_of_profiles(models: &Models, now: i64) -> Vec<DueNotice> {
    let infos = models.profile_infos.load();
    let mut due = Vec::new();
    for account in models.accounts.load().iter().filter(|it| it.is_active) {
        for profile in account.profiles.iter().filter(|it| it.is_active) {
            let last = infos.get(profile.id.0).and_then(|it| it.notice);
            if let Some(notice) = profile.expires_at.and_then(|it| due_notice(it, last, now)) {
                let of = Ending::Profile {
                    account: RefreshRef { id: account.id.0, name: account.name.clone() },
                    profile: profile.id,
                    profile_name: profile.name.clone(),
                };
                due.push(DueNotice { of, notice });
            }
        }
    }
    due
}

/// Records a notice, and returns the event that tells it. `None` if it was given already. It is recorded first, so that no
/// restart repeats it.
pub(super) async fn record_notice(
    models: &Models,
    due: DueNotice,
    now: i64,
) -> Result<Option<Event>, storage::Error> {
    let DueNotice { of, notice } = due;
    let ExpiryNotice { expires_at, days } = notice;
    let (is_new, body) = match of {
        Ending::Profile { account, profile, profile_name } => {
            let id = AccountId(account.id);
            let is_new =
                models.store.write(move |write| record_of_profile(write, (id, profile), notice, now)).await?;
            let profile_id = profile.0;
            (is_new, EventBody::AccountExpiring { account, profile_id, profile_name, expires_at, days })
        }
        Ending::User { id, name } => {
            let is_new = models.store.write(move |write| record_of_user(write, id, notice, now)).await?;
            (is_new, EventBody::UserExpiring { user_id: id.0, username: name, expires_at, days })
        }
    };
    Ok(is_new.then_some(Event { at: now, body }))
}

fn record_of_profile(
    write: &mut Write<'_>,
    (account, profile): (AccountId, ProfileId),
    notice: ExpiryNotice,
    now: i64,
) -> Result<bool, storage::Error> {
    let Some(known) = write.get::<Account>(account.0)? else { return Ok(false) };
    if !known.profiles.iter().any(|it| it.id == profile) {
        return Ok(false);
    }
    let before = write.get::<ProfileInfo>(profile.0)?;
    let mut info = before.unwrap_or_else(|| ProfileInfo::new(profile, account));
    if due_notice(notice.expires_at, info.notice, now) != Some(notice) {
        return Ok(false);
    }
    info.notice = Some(notice);
    write.put(&info)?;
    Ok(true)
}

fn record_of_user(
    write: &mut Write<'_>,
    id: UserId,
    notice: ExpiryNotice,
    now: i64,
) -> Result<bool, storage::Error> {
    let Some(mut user) = write.get::<User>(id.0)? else { return Ok(false) };
    let due = user.expires_at.and_then(|it| due_notice(it, user.expiry_notice, now));
    if due != Some(notice) {
        return Ok(false);
    }
    user.expiry_notice = Some(notice);
    write.put(&user)?;
    Ok(true)
}
