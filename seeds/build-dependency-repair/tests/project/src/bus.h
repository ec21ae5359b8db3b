#include "src/types.h"
#include "build/registers.h"
#include "build/crc_table.h"
#define BUS_OK 0
#define BUS_TIMEOUT 1
#define BUS_BAD_CRC 2
