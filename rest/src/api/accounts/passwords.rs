//! New passwords: the rules for admins, and the proof that users know their present one.

use domain::secret::Secret;
use domain::user::{PasswordHash, User, UserLevel, check_admin_password};
use route_frame::call::Call;
use server::reply::Refusal;
use services::auth::Denied;

use crate::context::RestCall;

/// Returns the hash of a new password, unless it is too weak for the user. Expensive: check everything else before.
pub(super) async fn hash(call: &Call, user: &User, password: &Secret) -> Result<PasswordHash, Refusal> {
    let weakness = check_admin_password(password.expose(), &user.username).err();
    match weakness {
        Some(weakness) if user.effective_level() == UserLevel::Admin => {
            return Err(Refusal::field("password", weakness.to_string()));
        }
        _ => {}
    }
    let hash = call.rest().auth.hash(password.expose().to_owned()).await?;
    Ok(PasswordHash { hash, is_weak: weakness.is_some() })
}

/// Refuses to make a user an admin whose password is too weak for one.
pub(super) fn check_promotion(before: UserLevel, user: &User) -> Result<(), Refusal> {
    let is_promoted = before < UserLevel::Admin && user.effective_level() == UserLevel::Admin;
    if is_promoted && user.has_weak_password {
        let message = "The password of this user is too weak for an admin. Set a longer one.";
        return Err(Refusal::field("password", message));
    }
    Ok(())
}

/// Checks the present password of the caller, who changes it. A token or a key alone is not enough: somebody who found
/// a device unlocked could keep the account.
pub(super) async fn check_current(call: &Call, user: &User, current: Option<&Secret>) -> Result<(), Refusal> {
    const FIELD: &str = "current_password";
    let current =
        current.ok_or_else(|| Refusal::field(FIELD, "The current password is required to change it."))?;
    let (address, agent) = (call.caller.address(), &call.caller.agent);
    match call.rest().auth.login(&user.username, current.expose(), address, agent).await {
        Ok(_) => Ok(()),
        Err(Denied::Login) => Err(Refusal::field(FIELD, "This is not the current password.")),
        Err(other) => Err(other.into()),
    }
}
