//! Stalker portals: servers that television boxes ask for channels and links, and that know a box by its MAC address.
//!
//! The interface has no specification. The facts are from the public sources of a portal and of programs that ask portals;
//! `docs/choices/portals.md` lists them. Portals differ as panels do, so every value is read leniently
//! ([`LooseValue`](crate::panel::LooseValue)), and a list channel by channel ([`PortalListParser`]).
//!
//! A stream of a portal has no lasting address: the portal makes a link at each opening. The gateway stores a
//! [`PortalStreamAddress`] instead, which contains the id of what is played and its command.

mod address;
mod answer;
mod archive;
mod channel;
mod device;
mod guide;
mod information;
mod link;
mod list;
mod question;
mod session;
mod title;

pub use self::address::{PortalAddressError, PortalPlace, endpoints, pasted_address};
pub use self::answer::{ANSWER_BYTES_MAX, PortalError, check_text, read_answer};
pub use self::archive::{ProgrammeSearch, SearchStep};
pub use self::channel::{PortalChannel, PortalGenre, PortalGenres, logo_url, read_channel, read_genres};
pub use self::device::{MacAddress, MacAddressError, PortalDevice};
pub use self::guide::{GUIDE_CHANNEL_BYTES_MAX, GUIDE_HOURS, guide_key, read_programmes};
pub use self::information::{
    Handshake, PortalProfile, PortalProfileState, expiry_of, read_handshake, read_login, read_profile,
};
pub use self::link::{PortalMedia, PortalStreamAddress, SeriesParts, link_in, read_link, shown_address};
pub use self::list::{PortalList, PortalListParser};
pub use self::question::{BOX_USER_AGENT, PortalQuestion, headers};
pub use self::session::{Refusal, SessionStep, SessionTimes};
pub use self::title::{
    PortalSeason, PortalTitle, TitleModule, file_command, numbered_episodes, read_episode,
};
