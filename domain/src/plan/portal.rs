//! Streams of portals: their addresses are made when they are opened.

use crate::account::Account;
use crate::egress::account_headers;
use crate::portal::{BOX_USER_AGENT, PortalStreamAddress};
use crate::source_url::SourceUrl;
use crate::stream::{RequestHeaders, Stream};

/// Returns the stored address of a stream of a portal. `None` for every other stream, and for one whose address an admin
/// has replaced.
pub(super) fn address_of<'a>(stream: &'a Stream, account: &Account) -> Option<&'a SourceUrl> {
    let stored = &stream.provider.url;
    let is_of_portal = account.list.portal().is_some() && PortalStreamAddress::is_one(stored);
    // An edit or a rule may have changed the address as it is shown, which contains no command.
    (is_of_portal && PortalStreamAddress::is_one(stream.url())).then_some(stored)
}

/// Returns the headers of an account for a link, whose server is unknown until it is made: those without secrets, unless
/// the account sends all to every host. Servers of portals know the name of a box.
pub(super) fn link_headers(account: &Account) -> RequestHeaders {
    let mut headers = account_headers(account, &SourceUrl::new("http://unknown.invalid/"));
    headers.user_agent.get_or_insert_with(|| BOX_USER_AGENT.to_owned());
    headers
}
