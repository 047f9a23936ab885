//! The command line of a bench that starts itself in other roles.

use std::str::FromStr;

pub(crate) struct Options(Vec<String>);

impl Options {
    pub(crate) fn from_process() -> Self {
        Self(std::env::args().skip(1).filter(|it| it != "--bench").collect())
    }

    /// Returns the arguments of this role, if the process was started in it.
    pub(crate) fn role(&self, name: &str) -> Option<&[String]> {
        self.0.split_first().filter(|it| it.0 == name).map(|it| it.1)
    }

    /// Returns the number after a name.
    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> T {
        let Some(at) = self.0.iter().position(|it| it == name) else { return default };
        self.0.get(at + 1).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{name} N"))
    }
}
