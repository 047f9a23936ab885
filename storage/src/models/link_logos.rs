//! Creates the logo records of channels that an earlier version stored with an address only.

use domain::account::CUSTOM_ACCOUNT;
use domain::channel::Channel;
use domain::ids::{AccountId, LogoId};
use domain::logo::{LOGO_URL_CHARS_MAX, Logo};
use domain::stream::Stream;

use crate::error::Result;
use crate::store::Store;
use crate::write::Write;

/// Channels of one write.
const LINKED_AT_ONCE: usize = 1_000;

/// Links each channel that has the address of a logo and no logo record to the record with this address, and creates the
/// record if there is none. Blocks, and writes nothing if there is nothing to do.
pub fn link_logos(store: &Store) -> Result<()> {
    let channels = store.collection::<Channel>().all()?;
    let ids: Vec<u32> = channels.iter().filter(|it| is_unlinked(it)).map(|it| it.id.0).collect();
    for some in ids.chunks(LINKED_AT_ONCE) {
        let some = some.to_vec();
        store.write_blocking(move |write| some.iter().try_for_each(|id| link(write, *id)))?;
    }
    Ok(())
}

/// Other addresses are not web addresses, and stay as they are.
fn is_unlinked(channel: &Channel) -> bool {
    channel.logo_id.is_none() && channel.logo.as_deref().is_some_and(is_web)
}

fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map(|it| it.0.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https")) && url.chars().count() <= LOGO_URL_CHARS_MAX
}

fn link(write: &mut Write<'_>, id: u32) -> Result<()> {
    let Some(mut channel) = write.get::<Channel>(id)?.filter(is_unlinked) else { return Ok(()) };
    link_logo(write, &mut channel)?;
    write.put(&channel)
}

/// Links a channel that has the address of a logo and no logo record to the record with this address, and creates the
/// record if there is none and the address is one of the web. The caller stores the channel.
pub fn link_logo(write: &mut Write<'_>, channel: &mut Channel) -> Result<()> {
    let Some(url) = channel.logo.clone().filter(|_| channel.logo_id.is_none()) else { return Ok(()) };
    let logo = match write.by::<Logo>("url", &url)?.into_iter().next() {
        Some(logo) => logo,
        None if !is_web(&url) => return Ok(()),
        None => {
            // The address came from the playlist of the stream, or from an admin; the first is the safer assumption.
            let account = channel.streams.first().and_then(|it| write.owner_of::<Stream>(it.0));
            let account = account.and_then(|it| u32::try_from(it).ok()).map(AccountId);
            let logo = Logo {
                id: LogoId(write.next_id::<Logo>()?),
                name: channel.name.clone(),
                url,
                file: None,
                named_by: account.filter(|it| *it != CUSTOM_ACCOUNT),
                guide_source: None,
                updated_at: channel.updated_at,
            };
            write.put(&logo)?;
            logo
        }
    };
    channel.logo_id = Some(logo.id);
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::ids::ChannelId;
    use uuid::Uuid;

    use super::*;
    use crate::records::schema;

    #[test]
    fn channels_of_an_earlier_version_keep_their_logos() {
        let store = Store::temporary(schema()).unwrap();
        let channel = |id: u32, logo: Option<&str>| Channel {
            logo: logo.map(str::to_owned),
            ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 5)
        };
        let channels = [
            channel(1, Some("http://tv.example/a.png")),
            channel(2, Some("http://tv.example/a.png")),
            channel(3, None),
            channel(4, Some("no address")),
        ];
        let put = channels.clone();
        store.write_blocking(move |write| put.iter().try_for_each(|it| write.put(it))).unwrap();
        link_logos(&store).unwrap();
        let logos = store.collection::<Logo>().all().unwrap();
        assert_eq!(logos.len(), 1);
        assert_eq!((logos[0].url.as_str(), logos[0].name.as_str()), ("http://tv.example/a.png", "channel 1"));
        let linked = store.collection::<Channel>().all().unwrap();
        let ids: Vec<_> = linked.iter().map(|it| it.logo_id).collect();
        assert_eq!(ids, [Some(logos[0].id), Some(logos[0].id), None, None]);
        for (linked, channel) in linked.iter().zip(&channels) {
            assert_eq!((&linked.logo, linked.updated_at), (&channel.logo, 5));
        }
        let version = store.version();
        link_logos(&store).unwrap();
        assert_eq!(store.version(), version, "nothing is left to do");
    }
}
