//! C interfaces of shared libraries that are loaded at run time: a table of functions by name and
//! signature.

/// Declares `Api`, a struct with a pointer to each function, and its loader.
///
/// `c_api! { NAME, "prefix_"; destroy(*mut c_void); count(*mut c_void) -> usize; }`: `NAME` is the
/// store's name for errors. The caller guarantees that the signatures are those of the library's
/// header.
macro_rules! c_api {
    ($store:expr, $prefix:literal; $($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without the prefix.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Never unloaded, because these libraries leave threads and destructors behind that
            /// run their code.
            _library: std::mem::ManuallyDrop<libloading::Library>,
        }

        impl Api {
            /// Loads a shared library, by its path or by a name that the system's loader knows, and
            /// looks up all functions.
            pub(super) fn load(library: &std::ffi::OsStr) -> crate::core::error::Result<std::sync::Arc<Api>> {
                let fail = |error: libloading::Error| crate::core::error::Error::engine($store, error);
                // SAFETY: loading runs the library's initialisers; it is the store's library that
                // the user installed.
                let library = unsafe { libloading::Library::new(library) }.map_err(fail)?;
                $(
                    // SAFETY: the type is that of the function of this name in the library's
                    // header.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                            concat!($prefix, stringify!($name), "\0").as_bytes(),
                        )
                    }
                    .map_err(fail)?;
                )*
                let _library = std::mem::ManuallyDrop::new(library);
                Ok(std::sync::Arc::new(Api { $($name,)* _library }))
            }
        }

        impl std::fmt::Debug for Api {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("Api")
            }
        }
    };
}

/// Adds error handling to an `Api` with a function `free`, for libraries whose calls return an
/// error as an allocated string.
macro_rules! c_errors {
    ($store:expr) => {
        impl Api {
            /// Returns the message that a failed call stored in `error` as an error.
            #[inline]
            pub(super) fn check(&self, error: *mut std::ffi::c_char) -> crate::core::error::Result<()> {
                if error.is_null() {
                    return Ok(());
                }
                Err(self.failure(error))
            }

            #[cold]
            fn failure(&self, error: *mut std::ffi::c_char) -> crate::core::error::Error {
                // SAFETY: errors are zero-terminated strings that the caller owns.
                let message = unsafe { std::ffi::CStr::from_ptr(error) }.to_string_lossy().into_owned();
                // SAFETY: allocated by the library, freed once, not used after.
                unsafe { (self.free)(error.cast()) };
                crate::core::error::Error::engine($store, message)
            }
        }
    };
}

pub(super) use {c_api, c_errors};
