//! Panels: servers that answer questions about an account, its categories and its streams with JSON.
//!
//! The interface has no specification, and panels differ: numbers arrive as texts and texts as numbers, lists as objects,
//! missing values as `null`, `""`, `"null"` or `0`, and errors as web pages with status 200. So every value is read
//! leniently ([`LooseValue`]), and a list element by element ([`ElementParser`]): an element that cannot be read is a
//! problem of its own and never the end of an import.

mod elements;
mod info;
mod lists;
mod live_form;
mod login;
mod loose;
pub mod vod;

pub use self::elements::{Element, ElementParser, ListEnd, NotAList};
pub use self::info::{
    EXPIRY_NOTICE_DAYS, ExpiryNotice, INFO_BYTES_MAX, LoginState, PanelAnswer, PanelInfoError, ProfileInfo,
    due_notice,
};
pub use self::lists::{
    CATEGORIES_MAX, Categories, ElementProblem, PanelCategory, PanelStream, read_category, read_stream,
};
pub use self::live_form::{LiveForm, LiveFormSource};
pub use self::login::{PanelAction, PanelAddress, PanelAddressError, PanelLogin, VodQuestion};
pub use self::loose::LooseValue;
