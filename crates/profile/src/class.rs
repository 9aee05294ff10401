//! The name of a class of devices that share one latency profile per model.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A class of devices that run a model equally fast: a device, or one size of slice of it.
///
/// Written `device` or `device/slice`: `h200/3g` is the slice `3g` of the device `h200`, `xeon` a device without
/// slices. Either part is one or more ASCII letters, digits, `.`, `_`, `-` or `+`, so that a class can be a metric
/// label, a cell of a CSV file or a word of a command line without quoting; case matters.
///
/// Ordered by device, then by slice, the device without a slice first.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceClass(String);

/// Why a name is not that of a device class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceClassError {
    /// Nothing before the slash, nothing after it, or nothing at all.
    #[error("{0:?} is not a device class: write a device, or device/slice such as h200/3g")]
    EmptyPart(String),
    /// A character that names may not contain; a second slash is one.
    #[error("{name:?} is not a device class: {character:?} is none of a-z A-Z 0-9 . _ - +")]
    Character {
        /// The name, or the part of it, as given.
        name: String,
        /// The first offending character.
        character: char,
    },
}

impl DeviceClass {
    /// The class of `slice` of `device`, or of the undivided `device`.
    pub fn new(device: &str, slice: Option<&str>) -> Result<DeviceClass, DeviceClassError> {
        let name = match slice {
            Some(slice) => format!("{device}/{slice}"),
            None => device.to_owned(),
        };
        for part in [Some(device), slice].into_iter().flatten() {
            if part.is_empty() {
                return Err(DeviceClassError::EmptyPart(name));
            }
            let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
            if let Some(character) = part.chars().find(|&c| !allowed(c)) {
                return Err(DeviceClassError::Character { name, character });
            }
        }
        Ok(DeviceClass(name))
    }

    /// The name as written: `h200/3g`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The device: `h200` of `h200/3g`.
    pub fn device(&self) -> &str {
        self.parts().0
    }

    /// The slice: `3g` of `h200/3g`; none for an undivided device.
    pub fn slice(&self) -> Option<&str> {
        self.parts().1
    }

    fn parts(&self) -> (&str, Option<&str>) {
        self.0.split_once('/').map_or((self.0.as_str(), None), |(device, slice)| (device, Some(slice)))
    }
}

impl FromStr for DeviceClass {
    type Err = DeviceClassError;

    fn from_str(name: &str) -> Result<DeviceClass, DeviceClassError> {
        match name.split_once('/') {
            Some((device, slice)) => DeviceClass::new(device, Some(slice)),
            None => DeviceClass::new(name, None),
        }
    }
}

impl TryFrom<String> for DeviceClass {
    type Error = DeviceClassError;

    fn try_from(name: String) -> Result<DeviceClass, DeviceClassError> {
        name.parse()
    }
}

impl From<DeviceClass> for String {
    fn from(class: DeviceClass) -> String {
        class.0
    }
}

impl Ord for DeviceClass {
    fn cmp(&self, other: &DeviceClass) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for DeviceClass {
    fn partial_cmp(&self, other: &DeviceClass) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for DeviceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for DeviceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(name: &str) -> DeviceClass {
        name.parse().unwrap()
    }

    #[test]
    fn a_slash_parts_the_device_from_its_slice() {
        assert_eq!((class("h200/3g").device(), class("h200/3g").slice()), ("h200", Some("3g")));
        assert_eq!((class("xeon").device(), class("xeon").slice()), ("xeon", None));
        assert_eq!(class("A100-SXM4/1g.5gb+me").slice(), Some("1g.5gb+me"));
        assert_eq!(class("h200/3g"), DeviceClass::new("h200", Some("3g")).unwrap());
    }

    #[test]
    fn names_that_are_no_class_are_refused() {
        for empty in ["", "/", "h200/", "/3g"] {
            assert_eq!(empty.parse::<DeviceClass>(), Err(DeviceClassError::EmptyPart(empty.to_owned())));
        }
        for (name, character) in [("h200/3g/x", '/'), ("h 200", ' '), ("h200/3é", 'é'), ("a,b", ',')] {
            let refused = name.parse::<DeviceClass>();
            assert_eq!(refused, Err(DeviceClassError::Character { name: name.to_owned(), character }));
        }
        assert!(DeviceClass::new("h200/3g", None).is_err(), "a device's name has no slash");
    }

    #[test]
    fn the_classes_of_one_device_stand_together_in_order() {
        let mut classes = ["h200/7g", "h200-x", "h200/1g", "h200", "a100/7g"].map(class);
        classes.sort();
        assert_eq!(classes.map(String::from), ["a100/7g", "h200", "h200/1g", "h200/7g", "h200-x"]);
    }

    proptest! {
        #[test]
        fn any_name_is_refused_or_reads_back_as_itself(name in "[a-z0-9/. é]{0,8}") {
            if let Ok(class) = name.parse::<DeviceClass>() {
                prop_assert_eq!(class.to_string(), name.clone());
                prop_assert_eq!(DeviceClass::new(class.device(), class.slice()), Ok(class.clone()));
            }
        }
    }
}
