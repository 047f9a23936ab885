//! Asks panels about the logins of account profiles, and determines the notices about their end.

use std::io::{Cursor, Read};

use domain::account::{Account, AccountProfile};
use domain::account_addresses::{AddressRecord, addresses_of, at_address};
use domain::egress::Reach;
use domain::ids::{AccountId, ProfileId};
use domain::panel::{
    INFO_BYTES_MAX, LiveForm, LoginState, PanelAction, PanelAnswer, PanelLogin, ProfileInfo,
};
use domain::source_url::SourceUrl;
use storage::Models;
use tracing::warn;

use super::error::ImportError;
use super::portal;
use crate::addresses::AccountAddresses;
use crate::fetch::{Fetch, Unpacked};

/// Time after which a login is checked again, in milliseconds. Each refresh checks that of the default profile as well.
const CHECK_PERIOD_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the profiles of an account whose logins have to be checked.
pub(super) fn due_profiles(models: &Models, account: &Account, now: i64) -> Vec<ProfileId> {
    if !account.is_active || account.list.panel().is_none() {
        return Vec::new();
    }
    let infos = models.profile_infos.load();
    // A clock that was set back must not postpone a check.
    let is_fresh = |it: &ProfileInfo| (0..CHECK_PERIOD_MS).contains(&now.saturating_sub(it.tried_at));
    let is_due = |it: &&AccountProfile| it.is_active && !infos.get(it.id.0).is_some_and(|it| is_fresh(it));
    account.profiles.iter().filter(is_due).map(|it| it.id).collect()
}

/// Checks the logins of these profiles, one after the other, and stores the answers.
pub(super) async fn check_all(
    models: &Models,
    fetch: &Fetch,
    account: AccountId,
    profiles: &[ProfileId],
    now: impl Fn() -> i64,
) {
    for id in profiles {
        let Some(account) = models.accounts.load().get(account.0).cloned() else { return };
        let Some(profile) = account.profiles.iter().find(|it| it.id == *id) else { continue };
        let address = AccountAddresses::new(models.clone()).in_use(&account);
        let checked = match account.list.portal() {
            Some(_) => portal::check(models, fetch, &account, profile, now()).await,
            None => check(models, fetch, (&*account, address.as_ref()), profile, now()).await.map(drop),
        };
        if let Err(error) = checked {
            warn!(
                account.id = %account.id, profile.id = %id,
                "failed to check the login of account \"{}\", profile \"{}\": {error}", account.name, profile.name
            );
        }
    }
}

/// Asks the panel about the login of a profile, at this address of the account, and stores the answer or the error.
///
/// # Errors
/// The panel does not answer like one.
pub(super) async fn check(
    models: &Models,
    fetch: &Fetch,
    (account, address): (&Account, Option<&SourceUrl>),
    profile: &AccountProfile,
    now: i64,
) -> Result<PanelAnswer, ImportError> {
    let (answer, login) = match account.panel_login_of(profile) {
        Some(login) => {
            let server = match address {
                Some(address) => at_address(&login.server, &addresses_of(account), address),
                None => login.server.clone(),
            };
            let located = PanelLogin { server, ..login.clone() };
            (ask_panel(fetch, account, &located).await, Some(login))
        }
        None => {
            let reason = "the pattern of the profile does not lead to a login of the panel";
            (Err(ImportError::Panel(reason.to_owned())), None)
        }
    };
    let outcome = answer.as_ref().map(PanelAnswer::clone).map_err(ImportError::sentence);
    store(models, account.id, profile.id, login, outcome, now).await?;
    answer
}

/// Asks the panel of an account about a login.
///
/// # Errors
/// The panel does not answer like one.
pub async fn ask_panel(
    fetch: &Fetch,
    account: &Account,
    login: &PanelLogin,
) -> Result<PanelAnswer, ImportError> {
    let url = login.api_url(PanelAction::AccountInfo);
    let reach = Reach::typed(account.allowed_networks);
    let _turn = fetch.turn(account.id).await;
    let fetch = fetch.for_account(account);
    let mut body = fetch.get(url.expose(), &account.headers, reach).await.map_err(ImportError::Fetch)?;
    let mut packed = Vec::new();
    while let Some(piece) = body.next().await.map_err(ImportError::Fetch)? {
        if packed.len() + piece.len() > INFO_BYTES_MAX {
            return Err(ImportError::Panel(
                "the answer of the panel about the account is too long".to_owned(),
            ));
        }
        packed.extend_from_slice(&piece);
    }
    let mut bytes = Vec::new();
    Unpacked::new(Cursor::new(packed), INFO_BYTES_MAX as u64)?.read_to_end(&mut bytes)?;
    PanelAnswer::read(&bytes).map_err(|error| ImportError::Panel(error.to_string()))
}

/// Stores an answer, unless the login has changed since the question. The end of the login and its limit become part of
/// the profile, because plans read them there.
async fn store(
    models: &Models,
    account: AccountId,
    profile: ProfileId,
    login: Option<PanelLogin>,
    answer: Result<PanelAnswer, String>,
    now: i64,
) -> Result<(), storage::Error> {
    let done = models.store.write(move |write| {
        let Some(mut account) = write.get::<Account>(account.0)? else { return Ok(()) };
        let Some(at) = account.profiles.iter().position(|it| it.id == profile) else { return Ok(()) };
        if account.panel_login_of(&account.profiles[at]) != login {
            return Ok(());
        }
        let before = write.get::<ProfileInfo>(profile.0)?;
        let mut info = before.unwrap_or_else(|| ProfileInfo::new(profile, account.id));
        info.tried_at = now;
        match answer {
            Ok(answer) => {
                // A refusal says nothing about the account.
                if answer.state != LoginState::Refused {
                    let known = &mut account.profiles[at];
                    let then = (known.expires_at, known.panel_max_streams);
                    let says = (answer.expires_at, answer.max_connections.unwrap_or(0));
                    if then != says {
                        (known.expires_at, known.panel_max_streams) = says;
                        write.put(&account)?;
                    }
                }
                // The panel names another form of addresses than before.
                let forms = [&info.user_info, &answer.user_info].map(LiveForm::from_login);
                if let [Some(then), Some(now)] = forms
                    && then != now
                    && account.profiles[at].is_default
                    && let Some(mut record) = write.get::<AddressRecord>(account.id.0)?
                {
                    record.forget_form();
                    write.put(&record)?;
                }
                (info.state, info.answered_at) = (answer.state, Some(now));
                (info.user_info, info.server_info) = (answer.user_info, answer.server_info);
                info.error = answer.state.refusal().map(str::to_owned).unwrap_or_default();
            }
            Err(reason) => info.error = reason,
        }
        write.put(&info)
    });
    done.await
}
