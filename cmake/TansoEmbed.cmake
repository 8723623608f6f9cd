# SPDX-License-Identifier: MIT
# tanso_embed(target file symbol): puts a file's bytes into target as
#     const unsigned char tn__embed_<symbol>[];      followed by a NUL that the size does not count
#     const size_t tn__embed_<symbol>_size;
# An assembler's .incbin does it: no size limit, and a change of the file rebuilds that one object.
# The generated header tn_embed.h declares every embedded file.

set(TANSO_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set_property(GLOBAL PROPERTY TANSO_EMBEDDED "")

function(tanso_embed target file symbol)
    get_filename_component(TANSO_EMBED_FILE ${file} ABSOLUTE)
    set(TANSO_EMBED_NAME tn__embed_${symbol})
    set(source ${TANSO_GENERATED_DIR}/embed/${symbol}.S)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/embed.S.in ${source} @ONLY)
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${TANSO_EMBED_FILE})
    target_sources(${target} PRIVATE ${source})
    string(CONCAT declarations "extern const unsigned char ${TANSO_EMBED_NAME}[];\n"
                               "extern const size_t ${TANSO_EMBED_NAME}_size;\n")
    set_property(GLOBAL APPEND_STRING PROPERTY TANSO_EMBEDDED "${declarations}")
endfunction()

# Writes tn_embed.h; call it after the last tanso_embed.
function(tanso_embed_header)
    get_property(TANSO_EMBED_DECLARATIONS GLOBAL PROPERTY TANSO_EMBEDDED)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/tn_embed.h.in ${TANSO_GENERATED_DIR}/tn_embed.h @ONLY)
endfunction()
