// Field bus: one frame per poll, checked with CRC-8 by nibbles.
#include "src/bus.h"
#include "build/limits.h"
extern void uart_word(u32 value);

static const u8 table[16] = {
    CRC_T0, CRC_T1, CRC_T2, CRC_T3, CRC_T4, CRC_T5, CRC_T6, CRC_T7,
    CRC_T8, CRC_T9, CRC_TA, CRC_TB, CRC_TC, CRC_TD, CRC_TE, CRC_TF,
};

static u8 crc_add(u8 crc, u8 byte)
{
    crc = (u8)(crc << 4) ^ table[(crc >> 4) ^ (byte >> 4)];
    return (u8)(crc << 4) ^ table[(crc >> 4) ^ (byte & 15)];
}

int bus_poll(u8 address)
{
    for (u8 attempt = 0; attempt < LIMIT_BUS_RETRY; attempt++) {
        u8 crc = CRC_INIT;
        *(volatile u32 *)REG_BUS_ADDR = address;
        for (u16 i = 0; i < LIMIT_BUS_FRAME; i++) {
            crc = crc_add(crc, *(volatile u8 *)REG_BUS_DATA);
        }
        if (crc == *(volatile u8 *)REG_BUS_CRC) {
            return BUS_OK;
        }
        uart_word(BUS_BAD_CRC);
    }
    return BUS_TIMEOUT;
}
